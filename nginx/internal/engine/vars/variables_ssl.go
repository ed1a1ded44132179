package vars

import (
	"crypto/tls"
	"fmt"
	"strings"

	"github.com/culvert-go/culvert/nginx/internal/engine/openssl"
)

// The variables of an encrypted connection; without one they have no value.
var sslVariables = map[string]Getter{
	"ssl_alpn_protocol":  ofTLS(func(s *tls.ConnectionState) string { return s.NegotiatedProtocol }),
	"ssl_cipher":         ofTLS(sslCipher),
	"ssl_ciphers":        ofHello(func(h *Hello) string { return joinNames(h.Ciphers, openssl.CipherName) }),
	"ssl_curve":          ofTLS(sslCurve),
	"ssl_curves":         ofHello(func(h *Hello) string { return joinNames(h.Curves, openssl.GroupName) }),
	"ssl_early_data":     none, // crypto/tls does not accept any
	"ssl_protocol":       ofTLS(sslProtocol),
	"ssl_server_name":    ofTLS(func(s *tls.ConnectionState) string { return s.ServerName }),
	"ssl_session_id":     ofHello(sslSessionID),
	"ssl_session_reused": ofTLS(sslSessionReused),
	"ssl_sigalgs":        ofHello(func(h *Hello) string { return joinNames(h.Signatures, openssl.SignatureName) }),
}

func ofTLS(get func(*tls.ConnectionState) string) Getter {
	return nonEmpty(func(r *Request) string {
		if r.tls() == nil {
			return ""
		}
		return get(r.tls())
	})
}

// tls returns the state of the client's connection, nil for cleartext.
func (r *Request) tls() *tls.ConnectionState {
	if r.HTTP == nil {
		return r.TLS
	}
	return r.HTTP.TLS
}

func sslCipher(s *tls.ConnectionState) string {
	if name := openssl.CipherName(s.CipherSuite); name != "" {
		return name
	}
	return tls.CipherSuiteName(s.CipherSuite)
}

// sslCurve returns OpenSSL's name of the key exchange's group.
func sslCurve(s *tls.ConnectionState) string {
	if s.CurveID == 0 {
		return ""
	}
	return nameOr(s.CurveID, openssl.GroupName)
}

// ofHello returns a variable of what the client has sent in its handshake.
func ofHello(get func(*Hello) string) Getter {
	return nonEmpty(func(r *Request) string {
		if r.tls() == nil || r.Conn == nil || r.Conn.Hello == nil {
			return ""
		}
		return get(r.Conn.Hello)
	})
}

func sslSessionID(h *Hello) string {
	if h.SessionID == nil {
		return ""
	}
	return h.SessionID()
}

// joinNames returns OpenSSL's names of what a client offers, as nginx has them.
func joinNames[T ~uint16](list []T, name func(T) string) string {
	var names []string
	for _, id := range list {
		names = append(names, nameOr(id, name))
	}
	return strings.Join(names, ":")
}

// nameOr returns the name of a code, or its number.
func nameOr[T ~uint16](id T, name func(T) string) string {
	if s := name(id); s != "" {
		return s
	}
	return fmt.Sprintf("0x%04x", uint16(id))
}

// sslProtocol formats TLSv1.3 as nginx does, not "TLS 1.3". The first version is TLSv1.
func sslProtocol(s *tls.ConnectionState) string {
	if s.Version == tls.VersionTLS10 {
		return "TLSv1"
	}
	return "TLSv" + tls.VersionName(s.Version)[len("TLS "):]
}

func sslSessionReused(s *tls.ConnectionState) string {
	if s.DidResume {
		return "r"
	}
	return "."
}
