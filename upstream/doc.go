// Package upstream picks one of a group's targets for each request: by balance,
// health and load. It owns the group's transport, its health checks and where
// its targets come from. It knows nothing of how a request is forwarded, so it
// serves whatever dials several servers, not only package proxy.
package upstream
