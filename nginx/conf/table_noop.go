package conf

const (
	goRuntime     = "the Go runtime decides"
	goMemory      = "memory is managed by the Go runtime"
	lingers       = "a client has two seconds to read the last response of its connection"
	goTables      = "tables grow by themselves"
	kernelBuffers = "the kernel adapts the buffers of sockets"
	kernelPath    = "the kernel's fast path is used where there is one"
	oneProcess    = "culvert is one process"
	goTLS         = "crypto/tls has its own, safe choice"
	streams       = "only the size of all buffers of a response matters"
)

// noOps lists the directives that can be left out without a client or an
// upstream noticing, each with the reason.
var noOps = map[string]string{
	"accept_mutex":                   oneProcess,
	"acme_shared_zone":               goMemory,
	"accept_mutex_delay":             oneProcess,
	"aio":                            goRuntime,
	"aio_write":                      goRuntime,
	"client_body_in_single_buffer":   "a body that is held in memory is in one piece",
	"client_header_buffer_size":      goMemory,
	"connection_pool_size":           goMemory,
	"debug_connection":               "it concerns only the error log",
	"debug_points":                   "there are none",
	"directio":                       goRuntime,
	"directio_alignment":             goRuntime,
	"env":                            "the environment is the process's",
	"google_perftools_profiles":      goRuntime,
	"gunzip_buffers":                 goMemory,
	"gzip_buffers":                   goMemory,
	"http2_body_preread_size":        goMemory,
	"http2_chunk_size":               goMemory,
	"http2_idle_timeout":             "keepalive_timeout bounds idle connections",
	"http2_max_concurrent_pushes":    "nothing is pushed",
	"http2_max_field_size":           "large_client_header_buffers bounds headers",
	"http2_max_header_size":          "large_client_header_buffers bounds headers",
	"http2_max_requests":             "keepalive_requests bounds them",
	"http2_push":                     "nothing is pushed, nor by nginx",
	"http2_push_preload":             "nothing is pushed, nor by nginx",
	"http2_recv_buffer_size":         goMemory,
	"http2_recv_timeout":             "keepalive_timeout bounds the wait for a request",
	"keepalive_min_timeout":          "connections end when they may",
	"lingering_close":                lingers,
	"lingering_time":                 lingers,
	"lingering_timeout":              lingers,
	"lock_file":                      oneProcess,
	"map_hash_bucket_size":           goTables,
	"map_hash_max_size":              goTables,
	"master_process":                 oneProcess,
	"mp4_buffer_size":                goMemory,
	"msie_padding":                   "it concerns old browsers",
	"multi_accept":                   goRuntime,
	"open_file_cache":                "files are opened for each request",
	"open_file_cache_errors":         "files are opened for each request",
	"open_file_cache_min_uses":       "files are opened for each request",
	"open_file_cache_valid":          "files are opened for each request",
	"open_log_file_cache":            "log files are kept open, and those with variables in their names opened for each line",
	"output_buffers":                 goMemory,
	"pcre_jit":                       "regular expressions are not PCRE's",
	"postpone_output":                goMemory,
	"proxy_buffer_size":              streams,
	"proxy_busy_buffers_size":        streams,
	"proxy_headers_hash_bucket_size": goTables,
	"proxy_headers_hash_max_size":    goTables,
	"proxy_send_lowat":               goRuntime,
	"proxy_socket_rcvbuf":            kernelBuffers,
	"proxy_socket_sndbuf":            kernelBuffers,
	"proxy_socket_keepalive":         "TCP keepalive is always on",
	"proxy_temp_file_write_size":     streams,
	"quic_bpf":                       oneProcess,
	"quic_gso":                       "datagrams are sent together where the kernel can",
	"read_ahead":                     goRuntime,
	"referer_hash_bucket_size":       goTables,
	"referer_hash_max_size":          goTables,
	"request_pool_size":              goMemory,
	"reset_timedout_connection":      goRuntime,
	"rewrite_log":                    "it concerns only the error log",
	"send_lowat":                     goRuntime,
	"sendfile":                       kernelPath,
	"sendfile_max_chunk":             kernelPath,
	"server_names_hash_bucket_size":  goTables,
	"server_names_hash_max_size":     goTables,
	"ssi_min_file_chunk":             goMemory,
	"ssl_buffer_size":                goTLS,
	"ssl_certificate_compression":    goTLS,
	"ssl_dhparam":                    goTLS,
	"ssl_engine":                     goTLS,
	"ssl_object_cache_inheritable":   "certificates are read once",
	"ssl_prefer_server_ciphers":      goTLS,
	"tcp_nodelay":                    kernelPath,
	"tcp_nopush":                     kernelPath,
	"thread_pool":                    goRuntime,
	"timer_resolution":               goRuntime,
	"types_hash_bucket_size":         goTables,
	"types_hash_max_size":            goTables,
	"uninitialized_variable_warn":    "it concerns only the error log",
	"use":                            goRuntime,
	"variables_hash_bucket_size":     goTables,
	"variables_hash_max_size":        goTables,
	"worker_aio_requests":            goRuntime,
	"worker_connections":             goRuntime,
	"worker_cpu_affinity":            goRuntime,
	"worker_priority":                oneProcess,
	"worker_processes":               oneProcess,
	"worker_rlimit_core":             goRuntime,
	"worker_rlimit_nofile":           "the Go runtime raises the soft limit by itself",
	"zone":                           oneProcess,
}

// harmless lists directives that are accepted with these values only, because culvert then does
// what they say.
var harmless = map[string][]string{
	"proxy_ignore_client_abort": {"off"},
}
