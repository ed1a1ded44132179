// Package choices makes random histories for tests out of lists of decisions: a list follows from
// a seed, everything in a history follows from its list, and a list that makes a test fail can be
// shrunk without knowing what its decisions mean.
package choices
