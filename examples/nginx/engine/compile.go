package engine

import (
	"path/filepath"

	"github.com/culvert-go/culvert/examples/nginx/conf"
	"github.com/culvert-go/culvert/examples/nginx/engine/vars"
)

// compiler turns directives into what requests run through.
type compiler struct {
	engine  *Engine
	prefix  string // what paths are relative to
	confDir string // what ssl_certificate and include are relative to
	scope   *vars.Scope
	formats map[string]logFormat
	groups  map[string]*group
	servers []*server
	run     map[string]compileFunc
}

// compileFunc compiles one directive into the level that it stands on.
type compileFunc func(c *compiler, l *level, d *conf.Directive) error

// directives says which function compiles a directive. Each stands in the file
// of its name, or of its family's.
func directives() map[string]compileFunc {
	return map[string]compileFunc{
		"absolute_redirect":       absoluteRedirect,
		"access_log":              accessLog,
		"add_header":              addHeader,
		"alias":                   alias,
		"allow":                   access,
		"auth_basic":              authBasic,
		"auth_basic_user_file":    authBasicUserFile,
		"break":                   breakDirective,
		"client_header_timeout":   clientHeaderTimeout,
		"client_body_timeout":     clientBodyTimeout,
		"client_max_body_size":    clientMaxBodySize,
		"default_type":            defaultType,
		"deny":                    access,
		"error_log":               errorLog,
		"error_page":              errorPage,
		"events":                  nothing, // holds no-ops only
		"expires":                 expires,
		"gzip":                    gzipDirective,
		"gzip_comp_level":         gzipDirective,
		"gzip_disable":            gzipDirective,
		"gzip_http_version":       gzipDirective,
		"gzip_min_length":         gzipDirective,
		"gzip_proxied":            gzipDirective,
		"gzip_types":              gzipDirective,
		"http":                    httpBlock,
		"http2":                   http2,
		"if":                      ifDirective,
		"ignore_invalid_headers":  ignoreInvalidHeaders,
		"index":                   index,
		"internal":                internal,
		"keepalive_timeout":       keepaliveTimeout,
		"listen":                  listen,
		"location":                nothing, // see locations
		"log_format":              nothing, // see declare
		"map":                     nothing, // see declare
		"merge_slashes":           mergeSlashes,
		"pid":                     pid,
		"port_in_redirect":        portInRedirect,
		"proxy_connect_timeout":   proxyConnectTimeout,
		"proxy_hide_header":       proxyHideHeader,
		"proxy_http_version":      proxyHTTPVersion,
		"proxy_pass":              proxyPass,
		"proxy_pass_header":       proxyPassHeader,
		"proxy_read_timeout":      proxyReadTimeout,
		"proxy_redirect":          proxyRedirect,
		"proxy_set_header":        proxySetHeader,
		"real_ip_header":          realIPHeader,
		"real_ip_recursive":       realIPRecursive,
		"recursive_error_pages":   recursiveErrorPages,
		"return":                  returnDirective,
		"rewrite":                 rewrite,
		"root":                    root,
		"satisfy":                 satisfy,
		"send_timeout":            sendTimeout,
		"set":                     set,
		"server":                  nothing, // see httpBlock
		"server_name":             serverName,
		"server_name_in_redirect": serverNameInRedirect,
		"set_real_ip_from":        setRealIPFrom,
		"ssl_certificate":         sslCertificate,
		"ssl_certificate_key":     sslCertificateKey,
		"ssl_protocols":           sslProtocols,
		"try_files":               tryFiles,
		"types":                   types,
		"underscores_in_headers":  underscoresInHeaders,
		"upstream":                nothing, // see declare
	}
}

func nothing(*compiler, *level, *conf.Directive) error { return nil }

// block compiles the directives that stand on one level. What is not in the
// table is a no-op: the parser has refused everything else.
func (c *compiler) block(l *level, list []*conf.Directive) error {
	for _, d := range list {
		if compile, ok := c.run[d.Name]; ok {
			if err := compile(c, l, d); err != nil {
				return err
			}
		}
	}
	return nil
}

// value compiles an argument with variables.
func (c *compiler) value(d *conf.Directive, text string) (vars.Value, error) {
	v, err := c.scope.Compile(text)
	if err != nil {
		return v, d.Errorf("%s", err)
	}
	return v, nil
}

// warn logs what nginx accepts and warns of.
func (c *compiler) warn(d *conf.Directive, text string) {
	c.engine.logger.Warn(d.Errorf("%s", text).Error())
}

// path makes a name absolute, relative to the prefix.
func (c *compiler) path(name string) string { return absolute(c.prefix, name) }

func absolute(dir, name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(dir, name)
}
