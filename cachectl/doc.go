// Package cachectl decides what an answer says about caching, when its final head
// is written. It exists for answers that browsers keep by accident: a 410 without
// any header about caching is served from Chromium's and Firefox's disk for
// ever, and neither "private" nor "must-revalidate" changes that.
//
// Rules are applied to a head by Rules.Apply, or to all answers of a handler by
// the filter that New returns. ErrorPages is the set of rules to start with.
// Expires is nginx's directive of that name.
package cachectl
