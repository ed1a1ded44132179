// Package proxy is the terminal handler of a gateway: it picks one target of
// an upstream group, forwards the request to it and relays the response, with no
// byte of path, query, body or trailer lost. Upgrades (WebSocket) are forwarded
// and tunnelled by package wsupgrade.
//
// # From net/http/httputil
//
// What a ReverseProxy is given, and what takes its place here (see the example ReverseProxy):
//
//	ReverseProxy               Proxy
//	NewSingleHostReverseProxy  New, with a group of one upstream.Target
//	Rewrite                    Options.Rewrite; targets come from Options.Upstream
//	Director                   Options.Rewrite
//	Transport                  Options.Transport; nil is the transport of the group
//	FlushInterval              Options.FlushInterval; 0 flushes whenever the target pauses
//	ErrorLog                   Options.OnError
//	BufferPool                 nothing: buffers are pooled
//	ModifyResponse             Options.ModifyResponse for status and header, Response.ServeInstead
//	                           for another response or an error, filters.OnResponse for the body
//	ErrorHandler               Options.ErrorHandler, with a *culvert.Error
//
//	ProxyRequest               Outbound
//	In, Out                    In, Out
//	SetURL                     upstream.ParseTarget, and Out.Host = "" for the Host field
//	SetXForwarded              SetXForwarded, which is also what a nil Rewrite does
//
// Where they differ:
//
//   - Path and query are sent as they came. ReverseProxy drops parameters of the query that it can't
//     parse.
//   - Fields in which a client could describe itself are removed, X-Real-IP and others as well as those
//     of X-Forwarded. A hop in front is trusted by filters.RealIP.
//   - Upgrades are allowed for WebSockets of the same origin alone. Options.Upgrades allows others.
//   - A status fits the failure: 504 for a timeout, 503 where no target is available, 408 and 413 for
//     the client's body. ReverseProxy responds with 502 to all.
//   - The client has 60 seconds for each piece of its body and of the response (Options.ReadTimeout,
//     WriteTimeout), the target 60 seconds to its header (upstream.Options.HeaderTimeout).
//   - A request that could not be sent is sent to another target, and Options.Retry says what else is.
package proxy
