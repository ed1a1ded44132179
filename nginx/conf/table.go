package conf

import (
	"slices"
	"strings"
)

// implemented lists the directives that culvert implements, and whether each may stand more than
// once in a block.
var implemented = map[string]struct{ repeatable bool }{
	"absolute_redirect":             {},
	"access_log":                    {true},
	"add_header":                    {true},
	"add_trailer":                   {true},
	"alias":                         {},
	"allow":                         {true},
	"auth_basic":                    {},
	"auth_basic_user_file":          {},
	"auth_request":                  {},
	"auth_request_set":              {true},
	"autoindex":                     {},
	"autoindex_exact_size":          {},
	"autoindex_format":              {},
	"autoindex_localtime":           {},
	"break":                         {true},
	"charset":                       {},
	"charset_types":                 {},
	"client_body_buffer_size":       {},
	"client_body_temp_path":         {},
	"client_body_timeout":           {},
	"client_header_timeout":         {},
	"client_max_body_size":          {},
	"default_type":                  {},
	"deny":                          {true},
	"error_log":                     {true},
	"error_page":                    {true},
	"etag":                          {},
	"events":                        {},
	"expires":                       {},
	"geo":                           {true},
	"gunzip":                        {},
	"gzip":                          {},
	"gzip_comp_level":               {},
	"gzip_disable":                  {true},
	"gzip_http_version":             {},
	"gzip_min_length":               {},
	"gzip_proxied":                  {},
	"gzip_static":                   {},
	"gzip_types":                    {},
	"hash":                          {},
	"http":                          {},
	"http2":                         {},
	"if":                            {true},
	"if_modified_since":             {},
	"ignore_invalid_headers":        {},
	"include":                       {true},
	"index":                         {true},
	"internal":                      {},
	"ip_hash":                       {},
	"keepalive":                     {},
	"keepalive_requests":            {},
	"keepalive_time":                {},
	"keepalive_timeout":             {},
	"large_client_header_buffers":   {},
	"least_conn":                    {},
	"limit_conn":                    {true},
	"limit_conn_dry_run":            {},
	"limit_conn_log_level":          {},
	"limit_conn_status":             {},
	"limit_conn_zone":               {true},
	"limit_except":                  {true},
	"limit_rate":                    {},
	"limit_rate_after":              {},
	"limit_req":                     {true},
	"limit_req_dry_run":             {},
	"limit_req_log_level":           {},
	"limit_req_status":              {},
	"limit_req_zone":                {true},
	"listen":                        {true},
	"location":                      {true},
	"log_format":                    {true},
	"map":                           {true},
	"merge_slashes":                 {},
	"mirror":                        {true},
	"mirror_request_body":           {},
	"pid":                           {},
	"port_in_redirect":              {},
	"proxy_bind":                    {},
	"proxy_buffering":               {},
	"proxy_buffers":                 {},
	"proxy_connect_timeout":         {},
	"proxy_cookie_domain":           {true},
	"proxy_cookie_flags":            {true},
	"proxy_cookie_path":             {true},
	"proxy_hide_header":             {true},
	"proxy_http_version":            {},
	"proxy_ignore_headers":          {},
	"proxy_intercept_errors":        {},
	"proxy_max_temp_file_size":      {},
	"proxy_method":                  {},
	"proxy_next_upstream":           {true},
	"proxy_next_upstream_timeout":   {},
	"proxy_next_upstream_tries":     {},
	"proxy_pass":                    {},
	"proxy_pass_header":             {true},
	"proxy_pass_request_body":       {},
	"proxy_pass_request_headers":    {},
	"proxy_read_timeout":            {},
	"proxy_redirect":                {true},
	"proxy_request_buffering":       {},
	"proxy_send_timeout":            {},
	"proxy_set_body":                {},
	"proxy_set_header":              {true},
	"proxy_ssl_certificate":         {},
	"proxy_ssl_certificate_key":     {},
	"proxy_ssl_crl":                 {},
	"proxy_ssl_name":                {},
	"proxy_ssl_protocols":           {},
	"proxy_ssl_server_name":         {},
	"proxy_ssl_trusted_certificate": {},
	"proxy_ssl_verify":              {},
	"proxy_ssl_verify_depth":        {},
	"proxy_temp_path":               {},
	"random":                        {},
	"real_ip_header":                {},
	"real_ip_recursive":             {},
	"recursive_error_pages":         {},
	"resolver":                      {},
	"resolver_timeout":              {},
	"return":                        {true},
	"rewrite":                       {true},
	"root":                          {},
	"satisfy":                       {},
	"secure_link":                   {},
	"secure_link_md5":               {},
	"secure_link_secret":            {},
	"send_timeout":                  {},
	"server":                        {true},
	"server_name":                   {true},
	"server_name_in_redirect":       {},
	"set":                           {true},
	"set_real_ip_from":              {true},
	"split_clients":                 {true},
	"ssl_certificate":               {true},
	"ssl_certificate_key":           {true},
	"ssl_client_certificate":        {},
	"ssl_crl":                       {},
	"ssl_protocols":                 {},
	"ssl_reject_handshake":          {},
	"ssl_trusted_certificate":       {},
	"ssl_verify_client":             {},
	"ssl_verify_depth":              {},
	"stub_status":                   {},
	"sub_filter":                    {true},
	"sub_filter_last_modified":      {},
	"sub_filter_once":               {},
	"sub_filter_types":              {},
	"try_files":                     {},
	"types":                         {true},
	"underscores_in_headers":        {},
	"upstream":                      {true},
	"userid":                        {},
	"userid_domain":                 {},
	"userid_expires":                {},
	"userid_flags":                  {},
	"userid_name":                   {},
	"userid_p3p":                    {},
	"userid_path":                   {},
	"valid_referers":                {true},
	"worker_shutdown_timeout":       {},
}

// Supported returns the names of the directives that culvert implements, sorted.
func Supported() []string {
	var names []string
	for name := range implemented {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// classOf returns the class of d, and the reason if it is not implemented.
func classOf(d *Directive) (Class, string) {
	if d.Name == "user" {
		return userClass(d)
	}
	if class, reason, ok := classOfName(d.Name); ok {
		return class, reason
	}
	value := strings.Join(d.Args, " ")
	if values, ok := harmless[d.Name]; ok {
		if slices.Contains(values, value) {
			return NoOp, alreadySo
		}
		return Refused, "only " + strings.Join(values, ", ")
	}
	if p, ok := passedUnless[d.Name]; ok {
		if value == p.harmless {
			return NoOp, alreadySo
		}
		return Passed, p.reason
	}
	return Refused, refused[d.Name]
}

const alreadySo = "that is what culvert does anyway"

// classOfName returns the class of a directive that has the same one for each value.
func classOfName(name string) (Class, string, bool) {
	if _, ok := implemented[name]; ok {
		return Implemented, "", true
	}
	if reason, ok := noOps[name]; ok {
		return NoOp, reason, true
	}
	if reason, ok := passed[name]; ok {
		return Passed, reason, true
	}
	return familyClass(name)
}

// repeatable reports whether a block may contain the directive more than once.
func repeatable(name string) bool {
	if d, ok := implemented[name]; ok {
		return d.repeatable
	}
	switch name {
	case "load_module", "debug_connection", "env", "worker_cpu_affinity", "proxy_cache_path", "proxy_cache_bypass", "proxy_cache_valid", "proxy_no_cache",
		"ssl_conf_command", "proxy_ssl_conf_command", "early_hints":
		return true
	}
	_, _, family := familyClass(name)
	return family
}
