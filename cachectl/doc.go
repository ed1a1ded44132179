// Package cachectl sets the caching fields of a response when its final header
// is written. It exists for responses that browsers keep unintentionally: a 410
// without any field about caching is served from Chromium's and Firefox's disk
// for ever, and neither "private" nor "must-revalidate" changes that.
//
// Rules.Apply applies rules to one header; the filter that New returns applies
// them to all responses of a handler. ErrorPages is the set of rules to start
// with. Expires is nginx's directive of that name.
package cachectl
