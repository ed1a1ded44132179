package vars

import (
	"encoding/binary"
	"strconv"
	"strings"
)

// The types of what follows the addresses in a header of the PROXY protocol (section 2.2 of its specification), by nginx's names.
var (
	headerTypes    = map[string]byte{"alpn": 0x01, "authority": 0x02, "unique_id": 0x05, "ssl": 0x20, "netns": 0x30}
	headerSSLTypes = map[string]byte{"version": 0x21, "cn": 0x22, "cipher": 0x23, "sig_alg": 0x24, "key_alg": 0x25}
)

// headerSSL is the length of the fixed part of the type ssl: a byte, and the 32-bit result of the client's verification.
const headerSSL = 5

// HeaderTLV returns $proxy_protocol_tlv_… of a header, by what follows the underscore; ok is false if there is no such value.
func HeaderTLV(tlvs, name string) (value string, ok bool) {
	types := headerTypes
	if rest, inSSL := strings.CutPrefix(name, "ssl_"); inSSL {
		ssl, ok := findTLV(tlvs, headerTypes["ssl"])
		if !ok || len(ssl) < headerSSL {
			return "", false
		}
		if rest == "verify" {
			return strconv.FormatUint(uint64(binary.BigEndian.Uint32([]byte(ssl[1:headerSSL]))), 10), true
		}
		types, tlvs, name = headerSSLTypes, ssl[headerSSL:], rest
	}
	kind, known := types[name]
	if hex, isHex := strings.CutPrefix(name, "0x"); isHex {
		n, err := strconv.ParseUint(hex, 16, 8)
		kind, known = byte(n), err == nil
	}
	if !known {
		return "", false
	}
	return findTLV(tlvs, kind)
}

// findTLV returns the first value of a type. What is cut off is none.
func findTLV(tlvs string, kind byte) (value string, ok bool) {
	for len(tlvs) >= 3 {
		n := int(tlvs[1])<<8 | int(tlvs[2])
		if len(tlvs)-3 < n {
			break
		}
		if tlvs[0] == kind {
			return tlvs[3 : 3+n], true
		}
		tlvs = tlvs[3+n:]
	}
	return "", false
}

// requestTLV is HeaderTLV of a request's connection.
func requestTLV(name string) Getter {
	return func(r *Request) (string, bool) { return HeaderTLV(r.Conn.proxyTLVs(), name) }
}
