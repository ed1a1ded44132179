// Package watchcodec reads and rewrites the responses of a Kubernetes API server, lists and watches
// above all, at the level of bytes. It decodes only what is requested of it. What no edit changes
// is passed on byte for byte, and an edit gives the bytes that Kubernetes' own codecs would give,
// in JSON and in protobuf.
//
// NewFilter returns a filter over any handler that responds as an API server does, a proxy to one
// for instance. A Rewriter is called with each object on its way to a client, may edit it, and
// reports whether the client sees it.
//
// The parts of the filter can be used by themselves. Classify describes a request and Negotiate
// chooses the format of its response. An EventReader reads the events of a watch from an io.Reader,
// an EventParser is written to; a ListParser does the same for lists. An Event has an Object, whose
// fields are read with Get and changed with Edit. JSONReader and ProtobufReader split a watch into
// frames and decode nothing.
//
// A program that is itself an API server to its clients sends events with an EventWriter, each in
// its own chunk and flushed at once, or those of one watch to many clients with a Fanout, and lists
// with List. WebSocketWatch serves watches over WebSocket, too.
//
// For streams of other kinds, lines of JSON and server-sent events, see filters.Records.
package watchcodec
