package main

import (
	"fmt"
	"net"

	"github.com/valyala/fasthttp"
)

// serveFast is fasthttp's own server with its own client: a proxy that gives http.Handler up. It does no more than this
// work needs.
func serveFast(target string) error {
	client := &fasthttp.HostClient{Addr: target, MaxConns: 1024, NoDefaultUserAgentHeader: true, DisableHeaderNamesNormalizing: true, DisablePathNormalizing: true}
	server := &fasthttp.Server{NoDefaultServerHeader: true, Handler: func(ctx *fasthttp.RequestCtx) {
		out, in := &ctx.Request, &ctx.Response
		out.Header.Del("Connection")
		out.Header.Set("X-Forwarded-For", ctx.RemoteIP().String())
		if err := client.Do(out, in); err != nil {
			ctx.Error(err.Error(), fasthttp.StatusBadGateway)
			return
		}
		in.Header.Del("Connection")
	}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	go func() {
		obey(nil)
		_ = server.Shutdown()
	}()
	return server.Serve(l)
}
