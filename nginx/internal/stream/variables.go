package stream

import (
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
)

// Variables returns nginx's variables of a session, in addition to those that package vars has for streams.
func Variables() map[string]vars.Getter {
	return map[string]vars.Getter{
		"binary_remote_addr": known(binaryRemoteAddr),
		"bytes_received":     known(func(s *Session) string { return strconv.FormatInt(s.received.Load(), 10) }),
		"bytes_sent":         known(func(s *Session) string { return strconv.FormatInt(s.sent.Load(), 10) }),
		"limit_conn_status":  nonEmpty(func(s *Session) string { return s.limit }),
		"protocol":           known(protocol),
		"realip_remote_addr": known(func(s *Session) string { host, _ := vars.SplitAddr(s.peerName()); return host }),
		"realip_remote_port": known(func(s *Session) string { _, port := vars.SplitAddr(s.peerName()); return port }),
		"remote_addr":        known((*Session).clientHost),
		"remote_port":        known(func(s *Session) string { _, port := vars.SplitAddr(s.remote); return port }),
		"server_addr":        known(func(s *Session) string { host, _ := vars.SplitAddr(s.local); return host }),
		"server_name":        known(func(s *Session) string { return s.server.Name }),
		"server_port":        known(func(s *Session) string { _, port := vars.SplitAddr(s.local); return port }),
		"session_time":       known(func(s *Session) string { return vars.Seconds(time.Since(s.Start)) }),
		"status":             known(func(s *Session) string { return strconv.Itoa(s.status) }),

		"proxy_protocol_addr":        headerEnd(false, 0),
		"proxy_protocol_port":        headerEnd(false, 1),
		"proxy_protocol_server_addr": headerEnd(true, 0),
		"proxy_protocol_server_port": headerEnd(true, 1),

		"ssl_preread_alpn_protocols": ofHello(func(s *Session) string { return s.preread.ProtocolList() }),
		"ssl_preread_protocol":       ofHello(func(s *Session) string { return s.preread.VersionName() }),
		"ssl_preread_server_name":    ofHello(func(s *Session) string { return s.preread.ServerName }),

		"upstream_addr":            ofAttempts(func(a *attempt) string { return a.addr }),
		"upstream_bytes_received":  ofAttempts(func(a *attempt) string { return strconv.FormatInt(a.received.Load(), 10) }),
		"upstream_bytes_sent":      ofAttempts(func(a *attempt) string { return strconv.FormatInt(a.sent.Load(), 10) }),
		"upstream_connect_time":    ofAttempts(func(a *attempt) string { return seconds(a.connect.Load()) }),
		"upstream_first_byte_time": ofAttempts(func(a *attempt) string { return seconds(a.first.Load()) }),
		"upstream_session_time":    ofAttempts(func(a *attempt) string { return seconds(a.total.Load()) }),
	}
}

// HeaderTLV returns $proxy_protocol_tlv_… by what follows the underscore.
func HeaderTLV(name string) vars.Getter {
	return func(r *vars.Request) (string, bool) { return vars.HeaderTLV(sessionOf(r).header.TLVs, name) }
}

func sessionOf(r *vars.Request) *Session { return r.Owner.(*Session) }

// known returns a Getter of a variable that always has a value.
func known(get func(*Session) string) vars.Getter {
	return func(r *vars.Request) (string, bool) { return get(sessionOf(r)), true }
}

// nonEmpty returns a Getter of a variable that has no value instead of an empty one.
func nonEmpty(get func(*Session) string) vars.Getter {
	return func(r *vars.Request) (string, bool) {
		s := get(sessionOf(r))
		return s, s != ""
	}
}

func ofHello(get func(*Session) string) vars.Getter {
	return func(r *vars.Request) (string, bool) {
		if sessionOf(r).preread == nil {
			return "", false
		}
		return get(sessionOf(r)), true
	}
}

// ofAttempts returns a Getter of a list with an entry for each server.
func ofAttempts(get func(*attempt) string) vars.Getter {
	return func(r *vars.Request) (string, bool) {
		s := sessionOf(r)
		if len(s.attempts) == 0 {
			return "", false
		}
		list := make([]string, len(s.attempts))
		for i, a := range s.attempts {
			list[i] = get(a)
		}
		return strings.Join(list, ", "), true
	}
}

// seconds formats a time of an attempt.
func seconds(nanoseconds int64) string {
	if nanoseconds == unknown {
		return "-"
	}
	return vars.Seconds(time.Duration(nanoseconds))
}

func protocol(s *Session) string {
	if s.udp {
		return "UDP"
	}
	return "TCP"
}

// clientHost returns the client's address without the port.
func (s *Session) clientHost() string {
	host, _ := vars.SplitAddr(s.remote)
	return host
}

// peerName returns the address of the connection's other end.
func (s *Session) peerName() string {
	if s.peer != "" {
		return s.peer
	}
	return s.remote
}

// binaryRemoteAddr returns the client's address in 4 or 16 bytes; that of a unix socket is a text.
func binaryRemoteAddr(s *Session) string {
	if s.OverUnix() {
		return s.remote
	}
	return string(s.Client().AsSlice())
}

// headerEnd returns a Getter of the client's, or the server's, address or port in the PROXY protocol's header.
func headerEnd(server bool, part int) vars.Getter {
	return nonEmpty(func(s *Session) string {
		end := s.header.Client
		if server {
			end = s.header.Server
		}
		if end == (netip.AddrPort{}) {
			return ""
		}
		return [2]string{end.Addr().String(), strconv.Itoa(int(end.Port()))}[part]
	})
}
