// Package watchcodec reads and rewrites the responses of a Kubernetes API server, lists and watches
// above all, at the level of bytes. It decodes only what is requested of it. What no edit changes
// is passed on byte for byte, and an edit gives the bytes that Kubernetes' own codecs would give,
// in JSON and in protobuf.
//
// NewFilter returns a filter over any handler that responds as an API server does, a proxy to one
// for instance. A Rewriter is called with each object on its way to a client, may edit it, and
// reports whether the client sees it. The parts of the filter can be used by themselves: Classify
// and Negotiate for requests, JSONReader and ProtobufReader for the frames of a watch, Event and
// Object for their content, and Visible for the events that a client receives when objects become
// visible or hidden to it.
//
// Writer sends a program's own events, each in its own chunk and flushed at once. Fanout sends the
// events of one watch to many clients. For streams of other kinds, lines of JSON and server-sent
// events, see filters.Records.
package watchcodec
