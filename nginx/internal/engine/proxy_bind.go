package engine

import (
	"net"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
)

// bind compiles "proxy_bind address|off". The kernel chooses the port.
func (f *family) bind(c *compiler, l *level, d *conf.Directive) (err error) {
	if err := checkBind(d); err != nil {
		return err
	}
	if d.Args[0] == "off" {
		d = &conf.Directive{Args: []string{""}, File: d.File, Line: d.Line}
	}
	s := f.slot.edit(l)
	s.bind, err = c.value(d, d.Args[0])
	if text, constant := s.bind.Literal(); err == nil && constant && text != "" {
		if _, ok := bindAddress(text); !ok {
			return d.Errorf("invalid address \"%s\"", text)
		}
	}
	return err
}

// bindAddress parses an address with or without a port.
func bindAddress(text string) (net.Addr, bool) {
	at, ok := vars.ParseAddr(text)
	return net.TCPAddrFromAddrPort(at), ok
}

// checkBind refuses parameters.
func checkBind(d *conf.Directive) error {
	switch {
	case len(d.Args) == 1:
		return nil
	case d.Args[1] != "transparent":
		return d.Errorf("invalid parameter \"%s\"", d.Args[1])
	}
	return d.Errorf("parameter \"%s\" of \"%s\" is not supported by culvert yet", d.Args[1], d.Name)
}
