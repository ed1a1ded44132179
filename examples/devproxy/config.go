package main

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"golang.org/x/net/http/httpguts"
)

//go:embed testdata/console.yaml
var included embed.FS

// config is a file of rules. JSON is YAML, so one parser does for both.
type config struct {
	// Listen is the address for the browser; "" means 127.0.0.1:9000.
	Listen string `yaml:"listen"`
	// HTTPS is the certificate to listen with; nil means HTTP.
	HTTPS *certificate `yaml:"https"`
	// Static is a directory that is served if no rule matches; "" for none.
	Static string `yaml:"static"`
	// Proxy are the rules; the first one that matches is applied.
	Proxy rules `yaml:"proxy"`

	file string
}

// certificate is two files in PEM.
type certificate struct {
	Cert string `yaml:"cert"`
	Key  string `yaml:"key"`
}

func (c *certificate) UnmarshalYAML(n *yaml.Node) error {
	_, err := decodeFields(n, c)
	return err
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
	FollowRedirects     redirects  `yaml:"followRedirects"`
	Headers             pairs      `yaml:"headers"`
	XFwd                bool       `yaml:"xfwd"`
	Bypass              bypassList `yaml:"bypass"`
	Auth                string     `yaml:"auth"`         // user:password, for the target
	Timeout             int        `yaml:"timeout"`      // milliseconds that the browser may be silent while it sends or reads; 0: a minute
	ProxyTimeout        int        `yaml:"proxyTimeout"` // milliseconds until the response's header; 0: a minute
	LogLevel            string     `yaml:"logLevel"`

	line  int
	lines map[string]int // of its fields; without those that it does not have
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
	content, err := readFile(name)
	if err != nil {
		return nil, err
	}
	return parseConfig(name, content)
}

func readFile(name string) ([]byte, error) {
	content, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		if own, ownErr := included.ReadFile(name); ownErr == nil {
			return own, nil
		}
	}
	return content, err
}

// parseConfig parses a file's content. Errors have the file's name, the line, and the field.
func parseConfig(name string, content []byte) (*config, error) {
	c := &config{Listen: "127.0.0.1:9000", file: name}
	var document yaml.Node
	if err := yaml.Unmarshal(content, &document); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(document.Content) > 0 {
		if _, err := decodeFields(document.Content[0], c); err != nil {
			return nil, fmt.Errorf("%s:%w", name, err)
		}
	}
	if len(c.Proxy) == 0 {
		return nil, fmt.Errorf("%s: there are no rules under \"proxy\"", name)
	}
	if h := c.HTTPS; h != nil && (h.Cert == "" || h.Key == "") {
		return nil, fmt.Errorf("%s: https needs both cert and key, which are files", name)
	}
	for _, r := range c.Proxy {
		if err := r.check(c); err != nil {
			return nil, fmt.Errorf("%s:%w", name, err)
		}
	}
	return c, nil
}

// at returns err with the line of a field of the rule, or that of the rule.
func (r *rule) at(field string, err error) error {
	if r.lines[field] == 0 {
		return &fieldError{r.line, "", fmt.Errorf("%s: %w", field, err)}
	}
	return &fieldError{r.lines[field], field, err}
}

// check finds errors before anything is compiled.
func (r *rule) check(c *config) error {
	switch {
	case len(r.Context) == 0:
		return &fieldError{r.line, "", errors.New("a rule has no context")}
	case r.Target == "" && len(r.Router) == 0:
		return &fieldError{r.line, "", errors.New("a rule has no target")}
	case r.ProtocolRewrite != "" && r.ProtocolRewrite != "http" && r.ProtocolRewrite != "https":
		return r.at("protocolRewrite", fmt.Errorf("%q is neither http nor https", r.ProtocolRewrite))
	case r.Timeout < 0:
		return r.at("timeout", errors.New("it is negative"))
	case r.ProxyTimeout < 0:
		return r.at("proxyTimeout", errors.New("it is negative"))
	case r.Auth != "" && !strings.Contains(r.Auth, ":"):
		return r.at("auth", errors.New("it is not of the form user:password"))
	case r.LogLevel != "" && !slices.Contains([]string{"debug", "info", "warn", "error", "silent"}, r.LogLevel):
		return r.at("logLevel", fmt.Errorf("%q is none of debug, info, warn, error and silent", r.LogLevel))
	}
	for _, h := range r.Headers {
		if !httpguts.ValidHeaderFieldName(h.key) || !httpguts.ValidHeaderFieldValue(h.value) {
			return &fieldError{h.line, "headers", fmt.Errorf("%q: %q is not a field of HTTP", h.key, h.value)}
		}
	}
	for _, b := range r.Bypass {
		if (b.Serve == "") == (b.Status == 0) {
			return r.at("bypass", errors.New("it needs either serve or status"))
		}
		if b.Status != 0 && (b.Status < 200 || b.Status > 999) {
			return r.at("bypass", fmt.Errorf("%d is no status of a response", b.Status))
		}
		if b.Serve != "" && c.Static == "" {
			return r.at("bypass", errors.New("it serves a file, but there is no \"static\""))
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
		return errors.New("it is neither a list nor a mapping")
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
	var err error
	r.lines, err = decodeFields(n, r)
	return r, err
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
			name, value := n.Content[i], n.Content[i+1]
			if value.Kind != yaml.ScalarNode {
				return inField(name.Value, name, errors.New("a text is wanted"))
			}
			*p = append(*p, pair{name.Value, value.Value, name.Line})
		}
		return nil
	}
	return errors.New("a mapping is wanted")
}

func (b *bypassList) UnmarshalYAML(n *yaml.Node) error {
	items := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		items = n.Content
	}
	for _, item := range items {
		var one bypass
		if _, err := decodeFields(item, &one); err != nil {
			return err
		}
		*b = append(*b, one)
	}
	return nil
}

// scheme returns that of the address to listen on.
func (c *config) scheme() string {
	if c.HTTPS != nil {
		return "https"
	}
	return "http"
}
