package vars

import "encoding/binary"

// Split is a split_clients block: a variable whose value depends on the hash of a text
// (ngx_http_split_clients_module.c).
type Split struct {
	// Source is the text that is hashed.
	Source Value
	// Parts are the shares in order.
	Parts []Share
}

// Share is a value for all hashes up to one.
type Share struct {
	// Below is the end of the share; 0 is the end of all hashes.
	Below uint32
	Value string
}

func (s *Split) get(r *Request) (string, bool) {
	hash := murmur2([]byte(s.Source.String(r)))
	for _, part := range s.Parts {
		if part.Below == 0 || hash < part.Below {
			return part.Value, true
		}
	}
	return "", true
}

// DeclareSplit declares s as a variable.
func (s *Scope) DeclareSplit(name string, split *Split) { s.define(name, split.get) }

// murmur2 is nginx's hash, MurmurHash2 with the length as its only seed
// (ngx_murmurhash.c).
func murmur2(data []byte) uint32 {
	const m = 0x5bd1e995
	h := uint32(len(data))
	for ; len(data) >= 4; data = data[4:] {
		k := binary.LittleEndian.Uint32(data) * m
		k = (k ^ k>>24) * m
		h = h*m ^ k
	}
	switch len(data) {
	case 3:
		h ^= uint32(data[2]) << 16
		fallthrough
	case 2:
		h ^= uint32(data[1]) << 8
		fallthrough
	case 1:
		h = (h ^ uint32(data[0])) * m
	}
	h = (h ^ h>>13) * m
	return h ^ h>>15
}
