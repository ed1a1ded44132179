package main

import (
	"log/slog"
	"net/http"
	"strings"

	"github.com/culvert-go/culvert/watchcodec/remotecommand"
	"github.com/culvert-go/culvert/wsupgrade"
)

const protocolField = "Sec-Websocket-Protocol"

// The protocol of the page, and the one that the server gets instead.
const (
	browsers = remotecommand.V4Base64
	servers  = remotecommand.V4
)

// bridge lets a browser use text with a server that uses binary messages, and logs messages that
// a server would ignore.
type bridge struct {
	log *slog.Logger
}

// protocolOf returns the one protocol that h offers, "" if there are none or several: then the
// protocol is not known before the response, and frames pass unseen.
func protocolOf(h http.Header) remotecommand.Protocol {
	p := remotecommand.Protocol(strings.TrimSpace(strings.Join(h[protocolField], ",")))
	if !p.Known() {
		return ""
	}
	return p
}

// offer replaces the requested protocol.
func (bridge) offer(h http.Header) {
	if protocolOf(h) == browsers {
		h.Set(protocolField, string(servers))
	}
}

// accept restores the requested protocol in the response.
func (bridge) accept(r *http.Request, status int, h http.Header) {
	if status == http.StatusSwitchingProtocols && protocolOf(r.Header) == browsers && protocolOf(h) == servers {
		h.Set(protocolField, string(browsers))
	}
}

// observe inspects the messages of one session.
func (b bridge) observe(r *http.Request) *wsupgrade.Observer {
	protocol := protocolOf(r.Header)
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

// fromClient logs a message that the server would ignore. One that can't be translated is not
// sent to the server either.
func fromClient(log *slog.Logger, protocol remotecommand.Protocol, m *wsupgrade.Message) error {
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

func translate(from, to remotecommand.Protocol, m *wsupgrade.Message) error {
	data, text, err := remotecommand.Translate(from, to, m.Type == wsupgrade.Text, m.Data)
	if err != nil {
		return err
	}
	m.Data, m.Type = data, wsupgrade.Binary
	if text {
		m.Type = wsupgrade.Text
	}
	return nil
}
