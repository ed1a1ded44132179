// Package ownserver has the servers of wiretest be package server's, in a run with CULVERT_TEST_SERVER=culvert. The tests of
// a package that run behind both servers import it.
package ownserver

import (
	"net/http"

	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/server"
)

func init() { wiretest.MakeOwn = func(o *http.Server) wiretest.Serving { return New(o) } }

// New returns a server with the fields of o.
func New(o *http.Server) *server.Server {
	return &server.Server{Addr: o.Addr, Handler: o.Handler, DisableGeneralOptionsHandler: o.DisableGeneralOptionsHandler, TLSConfig: o.TLSConfig,
		ReadTimeout: o.ReadTimeout, ReadHeaderTimeout: o.ReadHeaderTimeout, WriteTimeout: o.WriteTimeout, IdleTimeout: o.IdleTimeout,
		MaxHeaderBytes: o.MaxHeaderBytes, TLSNextProto: o.TLSNextProto, ConnState: o.ConnState, ErrorLog: o.ErrorLog,
		BaseContext: o.BaseContext, ConnContext: o.ConnContext, HTTP2: o.HTTP2, Protocols: o.Protocols}
}
