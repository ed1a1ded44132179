// Package view serves lists and watches of objects whose appearance to clients depends on more than
// the objects themselves: the endpoints that a node may see depend on the labels of other nodes,
// for instance. A filter of single events can't do that, since a change of that other state must
// reach clients as events that no server sends.
//
// A View follows the server's objects once, renders each of them whenever it or its dependencies
// change, and serves the results as an API server would, under its own resourceVersions: lists,
// watches, initial events, bookmarks, 410 and 504. After changes in any order, each client has the
// Renderer's result for the current state.
package view
