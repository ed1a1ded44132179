// Package view serves lists and watches of objects that are shown to clients as something
// depends on other state than the objects themselves: the endpoints that a node may see
// depend on the labels of other nodes, for instance. A filter of single events can't do
// that, since a change of that state must reach clients as events that no server sends.
//
// A View follows the server's objects once, renders each of them whenever it or what it
// depends on changes, and serves what it has rendered as an API server would, under
// resourceVersions of its own: lists, watches, initial events, bookmarks, 410 and 504.
// Whatever happens in whatever order, each client ends up with what the Renderer makes of
// the current state.
package view
