// Package watchcodec reads and rewrites what a Kubernetes API server sends, lists and
// watches above all, by the bytes: nothing is decoded but what is asked for, what nobody
// edits goes on as it came, and an edit gives what Kubernetes' own codecs would give, in
// JSON and in protobuf.
//
// NewFilter is a filter over any handler that answers as an API server does, a proxy to
// one for instance: a Rewriter sees each object on its way to a client, may edit it, and
// says whether the client sees it. The pieces that it is made of can be used by
// themselves: Classify and Negotiate for requests, JSONReader and ProtobufReader for the
// frames of a watch, Event and Object for what is in them, Visible for what a client is to
// be told of objects that come into its sight and go out of it.
//
// Writer sends events of one's own, each in its own chunk and on its way at once; Fanout
// sends those of one watch to many clients. NewRecords is for streams of other kinds:
// lines of JSON and server-sent events.
package watchcodec
