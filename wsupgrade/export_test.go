package wsupgrade

// AcceptFor is for tests' servers.
var AcceptFor = acceptFor
