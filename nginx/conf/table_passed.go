package conf

const (
	noCache = "nothing is cached: a miss is always legal"
)

// passed lists the directives that are accepted and not followed, and that a client, an upstream
// or an operator may miss: what is served is right without them.
var passed = map[string]string{
	"load_module":                     "modules are not loaded: their directives are refused",
	"proxy_cache_background_update":   noCache,
	"proxy_cache_bypass":              noCache,
	"proxy_cache_convert_head":        noCache,
	"proxy_cache_key":                 noCache,
	"proxy_cache_lock":                noCache,
	"proxy_cache_lock_age":            noCache,
	"proxy_cache_lock_timeout":        noCache,
	"proxy_cache_max_range_offset":    noCache,
	"proxy_cache_methods":             noCache,
	"proxy_cache_min_uses":            noCache,
	"proxy_cache_path":                noCache,
	"proxy_cache_revalidate":          noCache,
	"proxy_cache_use_stale":           noCache,
	"proxy_cache_valid":               noCache,
	"proxy_no_cache":                  noCache,
	"quic_active_connection_id_limit": "a client may have 4 of its connection IDs in use",
	"ssl_early_data":                  "early data is not accepted: clients send it again",
	"ssl_ech_file":                    "names are not encrypted",
	"tunnel_send_timeout":             "tunnel_read_timeout bounds the time in which nothing passes in a tunnel",
	"working_directory":               "the working directory is not changed",
}

// passedUnless lists the directives that are passed, but no-ops with this value.
var passedUnless = map[string]struct{ harmless, reason string }{
	"proxy_cache": {"off", noCache},
}
