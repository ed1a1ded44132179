package resolver

import (
	"errors"
	"net/netip"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
)

// maxRecords bounds the records of a type that are used of a response.
const maxRecords = 512

// response is what a message of a name server says.
type response struct {
	id        uint16
	code      int
	truncated bool
	question  dnsmessage.Question // zero if the code is an error that nothing else of the message counts for
	addrs     []netip.Addr
	services  []service
	alias     string // where the CNAME records of the question's name lead; "" if there is none
	ttl       uint32 // the least of the records
	records   int
}

var (
	errNoResponse = errors.New("it is not a response to a query")
	errQuestions  = errors.New("invalid number of questions in DNS response")
	errClass      = errors.New("unexpected RR class in DNS response")
)

// parse parses a message.
func parse(message []byte) (*response, error) {
	var p dnsmessage.Parser
	header, err := p.Start(message)
	if err != nil {
		return nil, err
	}
	if !header.Response || header.OpCode != 0 {
		return nil, errNoResponse
	}
	r := &response{id: header.ID, code: int(header.RCode), truncated: header.Truncated, ttl: 1<<32 - 1}
	if r.code == FormatError || r.code > Refused {
		return r, nil
	}
	questions, err := p.AllQuestions()
	if err != nil {
		return nil, err
	}
	if len(questions) != 1 {
		return nil, errQuestions
	}
	r.question = questions[0]
	if r.code != 0 || r.truncated {
		return r, nil
	}
	return r, r.parseAnswers(&p)
}

// parseAnswers parses the records. Those of other names than that of the question, or than those that its CNAME records lead
// to, are not used.
func (r *response) parseAnswers(p *dnsmessage.Parser) error {
	aliases := map[string]string{}
	type owned struct {
		name string
		addr netip.Addr
		service
	}
	var all []owned
	for {
		h, err := p.AnswerHeader()
		if err == dnsmessage.ErrSectionDone {
			break
		}
		if err != nil {
			return err
		}
		if h.Class != dnsmessage.ClassINET {
			return errClass
		}
		r.records++
		r.ttl = min(r.ttl, timeToLive(h.TTL))
		record := owned{name: nameOf(h.Name)}
		switch {
		case h.Type == dnsmessage.TypeCNAME:
			body, err := p.CNAMEResource()
			if err != nil {
				return err
			}
			if _, ok := aliases[record.name]; !ok {
				aliases[record.name] = nameOf(body.CNAME)
			}
			continue
		case h.Type != r.question.Type:
			if err := p.SkipAnswer(); err != nil {
				return err
			}
			continue
		case h.Type == dnsmessage.TypeA:
			body, err := p.AResource()
			if err != nil {
				return err
			}
			record.addr = netip.AddrFrom4(body.A)
		case h.Type == dnsmessage.TypeAAAA:
			body, err := p.AAAAResource()
			if err != nil {
				return err
			}
			record.addr = netip.AddrFrom16(body.AAAA)
		case h.Type == dnsmessage.TypeSRV:
			body, err := p.SRVResource()
			if err != nil {
				return err
			}
			record.service = newService(body)
		default:
			return errNoResponse // nothing else is queried
		}
		all = append(all, record)
	}
	owner, alias := follow(aliases, nameOf(r.question.Name))
	r.alias = alias
	for _, record := range all {
		if record.name != owner || len(r.addrs)+len(r.services) >= maxRecords {
			continue
		}
		if record.addr.IsValid() {
			r.addrs = append(r.addrs, record.addr)
		} else {
			r.services = append(r.services, record.service)
		}
	}
	return nil
}

// follow returns the name that aliases lead to, and that name again if it is another one.
func follow(aliases map[string]string, name string) (owner, alias string) {
	owner = name
	for range maxAliases {
		next, ok := aliases[owner]
		if !ok {
			break
		}
		owner = next
	}
	if owner != name {
		alias = owner
	}
	return owner, alias
}

// timeToLive returns a record's; one with the highest bit is 0 (RFC 2181 section 8).
func timeToLive(ttl uint32) uint32 {
	if ttl > 1<<31-1 {
		return 0
	}
	return ttl
}

func nameOf(n dnsmessage.Name) string { return strings.ToLower(strings.TrimSuffix(n.String(), ".")) }
