package engine

import (
	"cmp"
	"strings"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
	"github.com/culvert-go/culvert/nginx/internal/stream"
)

// streamModules lists the modules of stream. Their directives are compiled as those of http are; what they do to a session is in
// package stream.
func streamModules() []*module {
	return []*module{
		&errorLogModule, &variablesModule, &resolverModule, &streamUpstreamModule,
		&streamServerModule, &streamListenModule, &streamRealIPModule, &streamSetModule, &streamLimitConnModule, &streamAccessModule,
		&streamSSLModule, &streamPrereadModule,
		&streamProxyModule, &streamContentModule,
		&logModule,
	}
}

// streamBlock compiles everything inside stream.
func streamBlock(outer *compiler, main *level, d *conf.Directive) error {
	c := &compiler{
		engine: outer.engine, prefix: outer.prefix, confDir: outer.confDir, before: outer.before, stream: true,
		groups: outer.engine.ofStream, scope: vars.NewStreamScope(stream.Variables(), stream.HeaderTLV),
		onError: outer.onError, failed: outer.failed,
	}
	defer func() { outer.first = cmp.Or(outer.first, c.first) }()
	c.use(streamModules())
	l := main.child(d)
	if err := c.declare(l, d.Block); err != nil {
		return err
	}
	if err := c.block(l, d.Block); err != nil {
		return err
	}
	for _, finish := range c.deferred {
		if err := c.fail(finish()); err != nil {
			return err
		}
	}
	return createPorts(c)
}

// streamUpstreamModule holds the groups of servers.
var streamUpstreamModule = module{
	directives: []directive{
		{name: "upstream", repeatable: true, declare: declareUpstream},
		{name: "hash", upstream: balance},
		{name: "least_conn", upstream: balance},
		{name: "least_time", upstream: balance},
		{name: "random", upstream: balance},
		{name: "resolver", upstream: groupResolver},
		{name: "resolver_timeout", upstream: groupResolver},
		{name: "server", repeatable: true, upstream: groupServer},
	},
}

// streamAccessModule allows and denies addresses.
var streamAccessModule = module{
	directives: []directive{
		{name: "allow", repeatable: true, compile: access},
		{name: "deny", repeatable: true, compile: access},
	},
}

// streamRealIPModule takes the client's address from the PROXY protocol's header.
var streamRealIPModule = module{
	directives: []directive{{name: "set_real_ip_from", repeatable: true, compile: setRealIPFrom}},
}

// streamSetModule sets variables.
var streamSetModule = module{
	directives: []directive{{name: "set", repeatable: true, compile: streamSet, sets: declareStreamSet}},
}

var streamSetSlot = newSlot([]streamAssignment(nil))

type streamAssignment struct {
	name  string
	value vars.Value
}

// streamSet compiles "set $variable value".
func streamSet(c *compiler, l *level, d *conf.Directive) error {
	name, _ := setName(d)
	value, err := c.value(d, d.Args[1])
	list := streamSetSlot.edit(l)
	*list = append((*list)[:len(*list):len(*list)], streamAssignment{name, value})
	return err
}

func declareStreamSet(c *compiler, d *conf.Directive) error {
	name, ok := setName(d)
	switch {
	case !ok:
		return d.Errorf("invalid variable name \"%s\"", d.Args[0])
	case !c.scope.DeclareSet(name, true):
		return d.Errorf("the duplicate \"%s\" variable", name)
	}
	return nil
}

// setterOf returns what assigns a level's variables, nil if there are none.
func setterOf(l *level) func(*stream.Session) {
	list := *streamSetSlot.of(l)
	if len(list) == 0 {
		return nil
	}
	return func(s *stream.Session) {
		for _, a := range list {
			s.SetVariable(a.name, a.value.String(&s.Request))
		}
	}
}

// streamContentModule ends sessions by itself, or passes them on.
var streamContentModule = module{
	directives: []directive{
		{name: "return", compile: streamReturn},
		{name: "pass", compile: streamPass},
	},
}

// streamContentSlot holds what serves a server's sessions. The last directive counts.
var streamContentSlot = newLocalSlot[stream.Content]()

// streamReturn compiles "return value".
func streamReturn(c *compiler, l *level, d *conf.Directive) error {
	text, err := c.value(d, d.Args[0])
	*streamContentSlot.edit(l) = &stream.Return{Text: text}
	return err
}

// streamPass compiles "pass address".
func streamPass(c *compiler, l *level, d *conf.Directive) error {
	value, err := c.value(d, d.Args[0])
	if err != nil {
		return err
	}
	pass := &stream.Pass{Value: value, Parse: passAddress}
	if text, constant := value.Literal(); constant {
		to, err := passAddress(text)
		if err != nil {
			return d.Errorf("%s", err)
		}
		pass.To = &to
	}
	*streamContentSlot.edit(l) = pass
	return nil
}

// passAddress parses the address of pass.
func passAddress(text string) (to stream.Address, err error) {
	at := &conf.Directive{Name: "pass"}
	if path, ok := strings.CutPrefix(text, unixPrefix); ok {
		return stream.Address{Path: path}, nil
	}
	host, port, err := hostPort(at, text, "")
	if err != nil {
		if _, given := splitPort(text); given == "" {
			return to, at.Errorf("\"pass\" directive has no port")
		}
		return to, err
	}
	if host == "*" {
		host = "0.0.0.0"
	}
	if to.AddrPort, err = parseAddrPort(host, port); err != nil {
		return to, at.Errorf("\"pass\" directive has no addresses")
	}
	return to, nil
}
