package conf

import (
	"slices"
	"strings"
)

// implemented lists the directives that culvert does, and says of each whether
// it may stand more than once in a block.
var implemented = map[string]struct{ repeatable bool }{
	"absolute_redirect":       {},
	"access_log":              {true},
	"add_header":              {true},
	"alias":                   {},
	"allow":                   {true},
	"auth_basic":              {},
	"auth_basic_user_file":    {},
	"break":                   {true},
	"client_body_timeout":     {},
	"client_header_timeout":   {},
	"client_max_body_size":    {},
	"default_type":            {},
	"deny":                    {true},
	"error_log":               {true},
	"error_page":              {true},
	"events":                  {},
	"expires":                 {},
	"gzip":                    {},
	"gzip_comp_level":         {},
	"gzip_disable":            {true},
	"gzip_http_version":       {},
	"gzip_min_length":         {},
	"gzip_proxied":            {},
	"gzip_types":              {},
	"hash":                    {},
	"http":                    {},
	"http2":                   {},
	"if":                      {true},
	"ignore_invalid_headers":  {},
	"include":                 {true},
	"index":                   {true},
	"internal":                {},
	"ip_hash":                 {},
	"keepalive_timeout":       {},
	"least_conn":              {},
	"listen":                  {true},
	"location":                {true},
	"log_format":              {true},
	"map":                     {true},
	"merge_slashes":           {},
	"pid":                     {},
	"port_in_redirect":        {},
	"proxy_connect_timeout":   {},
	"proxy_hide_header":       {true},
	"proxy_http_version":      {},
	"proxy_pass":              {},
	"proxy_pass_header":       {true},
	"proxy_read_timeout":      {},
	"proxy_redirect":          {true},
	"proxy_set_header":        {true},
	"random":                  {},
	"real_ip_header":          {},
	"real_ip_recursive":       {},
	"recursive_error_pages":   {},
	"return":                  {true},
	"rewrite":                 {true},
	"root":                    {},
	"satisfy":                 {},
	"send_timeout":            {},
	"server":                  {true},
	"server_name":             {true},
	"server_name_in_redirect": {},
	"set":                     {true},
	"set_real_ip_from":        {true},
	"ssl_certificate":         {true},
	"ssl_certificate_key":     {true},
	"ssl_protocols":           {},
	"try_files":               {},
	"types":                   {true},
	"underscores_in_headers":  {},
	"upstream":                {true},
}

// Supported returns the names of the directives that culvert does, sorted.
func Supported() []string {
	var names []string
	for name := range implemented {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// classOf says what d is to culvert, and why if it is a no-op or if only this
// value of it is refused.
func classOf(d *Directive) (Class, string) {
	if _, ok := implemented[d.Name]; ok {
		return Implemented, ""
	}
	if reason, ok := noOps[d.Name]; ok {
		return NoOp, reason
	}
	if values, ok := harmless[d.Name]; ok {
		if value := strings.Join(d.Args, " "); slices.Contains(values, value) {
			return NoOp, "that is what culvert does anyway"
		}
		return Refused, "only " + strings.Join(values, ", ")
	}
	return Refused, ""
}

// repeatable says whether a block may hold the directive more than once.
func repeatable(name string) bool {
	if d, ok := implemented[name]; ok {
		return d.repeatable
	}
	switch name {
	case "load_module", "debug_connection", "env", "worker_cpu_affinity", "proxy_next_upstream":
		return true
	}
	return false
}
