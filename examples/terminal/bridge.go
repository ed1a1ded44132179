package main

import (
	"log/slog"
	"net/http"
	"strings"

	"github.com/culvert-go/culvert/wsupgrade"
	"github.com/culvert-go/culvert/wsupgrade/channel"
)

const protocolField = "Sec-Websocket-Protocol"

// What the page speaks, and what the server is spoken to in its place.
const (
	browsers = channel.V4Base64
	servers  = channel.V4
)

// bridge lets a browser speak text to a server that speaks binary, and names what a
// server would ignore.
type bridge struct {
	log *slog.Logger
}

// spoken is the one protocol that h offers, "" if there are none or several: then nobody
// knows before the answer, and frames pass unseen.
func spoken(h http.Header) channel.Protocol {
	p := channel.Protocol(strings.TrimSpace(strings.Join(h[protocolField], ",")))
	if !p.Known() {
		return ""
	}
	return p
}

// offer changes what is asked for.
func (bridge) offer(h http.Header) {
	if spoken(h) == browsers {
		h.Set(protocolField, string(servers))
	}
}

// answer gives the browser the answer to what it has asked for.
func (bridge) answer(r *http.Request, status int, h http.Header) {
	if status == http.StatusSwitchingProtocols && spoken(r.Header) == browsers && spoken(h) == servers {
		h.Set(protocolField, string(browsers))
	}
}

// observe looks into the messages of one session.
func (b bridge) observe(r *http.Request) *wsupgrade.Observer {
	protocol := spoken(r.Header)
	if protocol == "" {
		return nil
	}
	log := b.log.With("session", r.URL.Path, "protocol", string(protocol))
	return &wsupgrade.Observer{Message: func(m *wsupgrade.Message) error {
		if m.Type != wsupgrade.Text && m.Type != wsupgrade.Binary {
			return nil
		}
		if m.FromClient {
			return fromClient(log, protocol, m)
		}
		if protocol == browsers {
			return translate(servers, browsers, m)
		}
		return nil
	}}
}

// fromClient names a message that the server would ignore. One that can't be translated
// is not for the server either.
func fromClient(log *slog.Logger, protocol channel.Protocol, m *wsupgrade.Message) error {
	ignored := protocol.Check(m.Type == wsupgrade.Text, m.Data)
	if ignored != nil {
		log.Warn("the server would ignore this frame", "type", m.Type, "begins", string(m.Data[:min(len(m.Data), 40)]), "why", ignored)
	}
	if protocol != browsers {
		return nil
	}
	if err := translate(browsers, servers, m); err != nil {
		return wsupgrade.ErrDrop
	}
	return nil
}

func translate(from, to channel.Protocol, m *wsupgrade.Message) error {
	data, text, err := channel.Translate(from, to, m.Type == wsupgrade.Text, m.Data)
	if err != nil {
		return err
	}
	m.Data, m.Type = data, wsupgrade.Binary
	if text {
		m.Type = wsupgrade.Text
	}
	return nil
}
