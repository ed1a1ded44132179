// Package watchcodec is for watch streams as Kubernetes sends them: one JSON
// object after the other in a body that does not end. JSONReader cuts such a
// stream into events without decoding them, Writer sends events one by one, each
// in its own chunk and on its way at once.
package watchcodec
