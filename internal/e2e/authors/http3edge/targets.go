package main

import (
	"context"
	"crypto/tls"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"

	"github.com/culvert-go/culvert/upstream"
)

// targets is a group with what must be closed behind it.
type targets struct {
	*upstream.Group
	quic *http3.Transport // nil: they speak HTTP/1
}

func newTargets(prefix string, r Route) (targets, error) {
	config, err := r.tlsConfig()
	if err != nil {
		return targets{}, err
	}
	o := upstream.Options{Name: prefix}
	if config != nil {
		o.Scheme, o.TLSConfig = "https", config
	}
	var t targets
	if r.HTTP3 {
		t.quic = &http3.Transport{
			TLSClientConfig:    config,
			DisableCompression: true,
			Dial:               dial,
			QUICConfig: &quic.Config{
				HandshakeIdleTimeout: 5 * time.Second, MaxIdleTimeout: 30 * time.Second, KeepAlivePeriod: 10 * time.Second,
			},
		}
		o.Transport, o.TLSConfig = t.quic, nil
	}
	t.Group, err = upstream.New(o, r.targets()...)
	return t, err
}

// dial says which errors have sent nothing.
func dial(ctx context.Context, addr string, config *tls.Config, quicConfig *quic.Config) (*quic.Conn, error) {
	conn, err := quic.DialAddrEarly(ctx, addr, config, quicConfig)
	if err != nil {
		return nil, &upstream.DialError{Err: err}
	}
	return conn, nil
}

func (t targets) close() {
	if t.Group != nil {
		_ = t.Group.Close()
	}
	if t.quic != nil {
		_ = t.quic.Close()
	}
}
