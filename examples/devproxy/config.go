package main

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"go.yaml.in/yaml/v3"
)

//go:embed testdata/console.yaml
var included embed.FS

// config is a file of rules. JSON is YAML, so one parser does for both.
type config struct {
	// Listen is the address for the browser; "" means 127.0.0.1:9000.
	Listen string `yaml:"listen"`
	// Static is a directory that is served if no rule matches; "" for none.
	Static string `yaml:"static"`
	// Proxy are the rules; the first one that matches is applied.
	Proxy rules `yaml:"proxy"`
}

// rules are a list, or a mapping of contexts to rules as in older configurations.
type rules []*rule

// rule is one entry, with webpack-dev-server's names.
type rule struct {
	Context             texts      `yaml:"context"`
	Target              string     `yaml:"target"`
	ChangeOrigin        bool       `yaml:"changeOrigin"`
	Secure              *bool      `yaml:"secure"` // nil is true
	WS                  bool       `yaml:"ws"`
	PathRewrite         pairs      `yaml:"pathRewrite"`
	Router              pairs      `yaml:"router"`
	CookieDomainRewrite *pairs     `yaml:"cookieDomainRewrite"`
	CookiePathRewrite   *pairs     `yaml:"cookiePathRewrite"`
	AutoRewrite         bool       `yaml:"autoRewrite"`
	HostRewrite         string     `yaml:"hostRewrite"`
	ProtocolRewrite     string     `yaml:"protocolRewrite"`
	Headers             pairs      `yaml:"headers"`
	XFwd                bool       `yaml:"xfwd"`
	Bypass              bypassList `yaml:"bypass"`
	ProxyTimeout        int        `yaml:"proxyTimeout"` // milliseconds
	LogLevel            string     `yaml:"logLevel"`

	line int
}

// pair is an entry of a mapping whose order matters.
type pair struct {
	key, value string
	line       int
}

type pairs []pair

// texts is one text, or a list.
type texts []string

// bypass serves something of this program's own instead of the target's response.
type bypass struct {
	Path   string `yaml:"path"`   // a context; "" is any
	Accept string `yaml:"accept"` // what Accept must contain; "" is anything
	Serve  string `yaml:"serve"`  // a file of static, or ""
	Status int    `yaml:"status"` // a response without content, or 0
}

type bypassList []bypass

// readConfig reads a file, or the included one of that name.
func readConfig(name string) (*config, error) {
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		if own, ownErr := included.ReadFile(name); ownErr == nil {
			text, err = own, nil
		}
	}
	if err != nil {
		return nil, err
	}
	c := &config{Listen: "127.0.0.1:9000"}
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(c); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(c.Proxy) == 0 {
		return nil, fmt.Errorf("%s: there are no rules under \"proxy\"", name)
	}
	for _, r := range c.Proxy {
		if err := r.check(c); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, r.line, err)
		}
	}
	return c, nil
}

// check finds errors before anything is compiled.
func (r *rule) check(c *config) error {
	switch {
	case len(r.Context) == 0:
		return errors.New("a rule has no context")
	case r.Target == "" && len(r.Router) == 0:
		return errors.New("a rule has no target")
	case r.ProtocolRewrite != "" && r.ProtocolRewrite != "http" && r.ProtocolRewrite != "https":
		return fmt.Errorf("protocolRewrite is %q, neither http nor https", r.ProtocolRewrite)
	case r.ProxyTimeout < 0:
		return errors.New("proxyTimeout is negative")
	case r.LogLevel != "" && !slices.Contains([]string{"debug", "info", "warn", "error", "silent"}, r.LogLevel):
		return fmt.Errorf("logLevel is %q; it can be debug, info, warn, error or silent", r.LogLevel)
	}
	for _, b := range r.Bypass {
		if (b.Serve == "") == (b.Status == 0) {
			return errors.New("a bypass needs either serve or status")
		}
		if b.Serve != "" && c.Static == "" {
			return errors.New("a bypass serves a file, but there is no \"static\"")
		}
	}
	return nil
}

func (list *rules) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.MappingNode {
		for i := 0; i < len(n.Content); i += 2 {
			r, err := decodeRule(n.Content[i+1])
			if err != nil {
				return err
			}
			r.Context, r.line = texts{n.Content[i].Value}, n.Content[i].Line
			*list = append(*list, r)
		}
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		return fmt.Errorf("line %d: \"proxy\" is neither a list nor a mapping", n.Line)
	}
	for _, item := range n.Content {
		r, err := decodeRule(item)
		if err != nil {
			return err
		}
		*list = append(*list, r)
	}
	return nil
}

// decodeRule decodes a rule, or only a target.
func decodeRule(n *yaml.Node) (*rule, error) {
	r := &rule{line: n.Line}
	if n.Kind == yaml.ScalarNode {
		r.Target = n.Value
		return r, nil
	}
	return r, strict(n, r)
}

// strict decodes with an error for unknown names, unlike Node.Decode.
func strict(n *yaml.Node, into any) error {
	text, err := yaml.Marshal(n)
	if err != nil {
		return err
	}
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("in the rule at line %d: %w", n.Line, err)
	}
	return nil
}

func (t *texts) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		*t = texts{n.Value}
		return nil
	}
	return n.Decode((*[]string)(t))
}

// UnmarshalYAML decodes a mapping, or a text that is for everything ("*").
func (p *pairs) UnmarshalYAML(n *yaml.Node) error {
	*p = pairs{}
	switch n.Kind {
	case yaml.ScalarNode:
		*p = pairs{{"*", n.Value, n.Line}}
		return nil
	case yaml.MappingNode:
		for i := 0; i < len(n.Content); i += 2 {
			*p = append(*p, pair{n.Content[i].Value, n.Content[i+1].Value, n.Content[i].Line})
		}
		return nil
	}
	return fmt.Errorf("line %d: a mapping is wanted", n.Line)
}

func (b *bypassList) UnmarshalYAML(n *yaml.Node) error {
	items := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		items = n.Content
	}
	for _, item := range items {
		var one bypass
		if err := strict(item, &one); err != nil {
			return err
		}
		*b = append(*b, one)
	}
	return nil
}
