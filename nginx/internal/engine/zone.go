package engine

import (
	"fmt"
	"strings"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
)

// stateSize is the memory of a zone that nginx uses for one key.
const stateSize = 128

// zone is a limit_req_zone or limit_conn_zone of a configuration. Its memory may be taken over
// from the configuration before: a limit continues over a reload.
type zone[M any] struct {
	name   string
	text   string // the key as it is written
	key    vars.Value
	size   int64
	memory M
}

// newZone compiles the key and the parameter "zone=name:size", which both directives have.
// remember creates a memory with room for that many keys.
func newZone[M any](c *compiler, d *conf.Directive, parameter string, remember func(keys int) M) (*zone[M], error) {
	key, err := c.value(d, d.Args[0])
	if err != nil {
		return nil, err
	}
	name, size, ok := zoneParameter(strings.TrimPrefix(parameter, "zone="))
	if !ok {
		return nil, d.Errorf("invalid zone size \"%s\"", parameter)
	}
	if size < 8<<12 {
		return nil, d.Errorf("zone \"%s\" is too small", parameter)
	}
	return &zone[M]{name: name, text: d.Args[0], key: key, size: size, memory: remember(int(size / stateSize))}, nil
}

// zoneParameter splits "name:size".
func zoneParameter(s string) (name string, size int64, ok bool) {
	name, text, ok := strings.Cut(s, ":")
	if !ok || name == "" {
		return "", 0, false
	}
	size, ok = conf.Size(text)
	return name, size, ok
}

// checkUnique returns an error if the name is taken. have is the zone that has the name already,
// nil if there is none; otherUse reports whether the other module has it.
func (z *zone[M]) checkUnique(d *conf.Directive, have *zone[M], otherUse bool) error {
	switch {
	case otherUse:
		return errOtherUse(d, z.name)
	case have == nil:
		return nil
	case have.size != z.size:
		return d.Errorf("the size %d of shared memory zone \"%s\" conflicts with already declared size %d", z.size, z.name, have.size)
	}
	return d.Errorf("%s \"%s\" is already bound to key \"%s\"", d.Name, z.name, have.text)
}

// errNoZone returns the error of a limit without its zone.
func errNoZone(d *conf.Directive, zone string, otherUse bool) error {
	if otherUse {
		return errOtherUse(d, zone)
	}
	return d.Errorf("zero size shared memory zone \"%s\"", zone)
}

func errOtherUse(d *conf.Directive, zone string) error {
	return d.Errorf("the shared memory zone \"%s\" is already declared for a different use", zone)
}

// takeOver takes over the memory of the zone of this name in the configuration before, nil if
// there is none. A zone of another size begins anew (ngx_init_cycle).
func (z *zone[M]) takeOver(directive string, before *zone[M]) error {
	if before == nil || before.size != z.size {
		return nil
	}
	if before.text != z.text {
		return &conf.Error{What: fmt.Sprintf("%s \"%s\" uses the \"%s\" key while previously it used the \"%s\" key",
			directive, z.name, z.text, before.text)}
	}
	z.memory = before.memory
	return nil
}

// keyOf returns the request's key, "" if the request is not counted.
func (z *zone[M]) keyOf(x *exchange, longest int) string {
	key := z.key.String(&x.Request)
	if len(key) > longest {
		x.logError(fmt.Sprintf("the value of the \"%s\" key is more than %d bytes: \"%s\"", z.text, longest, key))
		return ""
	}
	return key
}
