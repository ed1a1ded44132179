package resolver

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// question is one query of a lookup.
type question struct {
	id       uint16
	name     string
	kind     dnsmessage.Type
	message  []byte
	overTCP  bool      // a response over UDP was truncated
	response *response // nil: there is none yet
}

// newQuestion returns a query with a random id. ok is false if the name can't be one of the DNS.
func newQuestion(name string, kind dnsmessage.Type) (q *question, ok bool) {
	full, err := dnsmessage.NewName(name + ".")
	if err != nil || name == "" {
		return nil, false
	}
	var id [2]byte
	_, _ = rand.Read(id[:]) // it never returns an error
	q = &question{id: binary.BigEndian.Uint16(id[:]), name: name, kind: kind}
	m := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: q.id, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: full, Type: kind, Class: dnsmessage.ClassINET}},
	}
	q.message, err = m.Pack()
	return q, err == nil
}

// isOf reports whether a response repeats the question.
func (q *question) isOf(r *response) bool {
	return r.question.Type == q.kind && r.question.Class == dnsmessage.ClassINET && nameOf(r.question.Name) == q.name
}

// query looks a key up, beginning with one of the servers.
func (r *Resolver) query(ctx context.Context, k key, first int) (entry, error) {
	var questions []*question
	for _, kind := range r.kinds(k) {
		q, ok := newQuestion(k.name, kind)
		if !ok {
			return entry{}, &Error{Code: NotFound}
		}
		questions = append(questions, q)
	}
	last, err := r.exchange(ctx, questions, first)
	if err != nil {
		return entry{}, err
	}
	return r.combine(questions, last)
}

func (r *Resolver) kinds(k key) []dnsmessage.Type {
	switch {
	case k.service:
		return []dnsmessage.Type{dnsmessage.TypeSRV}
	case r.o.NoIPv6:
		return []dnsmessage.Type{dnsmessage.TypeA}
	case r.o.NoIPv4:
		return []dnsmessage.Type{dnsmessage.TypeAAAA}
	}
	return []dnsmessage.Type{dnsmessage.TypeA, dnsmessage.TypeAAAA}
}

// combine makes an entry of the responses. An error of one family is that of the name. An alias counts if no family has an
// address and if the last response has one.
func (r *Resolver) combine(questions []*question, last *response) (entry, error) {
	var e entry
	ttl := uint32(1<<32 - 1)
	for _, q := range questions {
		if q.response.code != 0 {
			return entry{}, &Error{Code: q.response.code}
		}
		e.addrs = append(e.addrs, q.response.addrs...)
		e.services = append(e.services, q.response.services...)
		ttl = min(ttl, q.response.ttl)
	}
	if len(e.addrs)+len(e.services) == 0 {
		if e.alias = last.alias; e.alias == "" {
			return entry{}, &Error{Code: NotFound}
		}
	}
	keep := r.o.Valid
	if keep == 0 {
		keep = time.Duration(ttl) * time.Second
	}
	sortServices(e.services)
	e.valid = time.Now().Add(keep)
	return e, nil
}
