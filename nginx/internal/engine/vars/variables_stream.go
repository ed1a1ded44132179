package vars

// streamVariables are those of requests that sessions of stream have, too.
var streamVariables = []string{
	"connection", "hostname", "msec", "nginx_version", "pid", "time_iso8601", "time_local",
	"ssl_alpn_protocol", "ssl_cipher", "ssl_ciphers", "ssl_client_cert", "ssl_client_escaped_cert", "ssl_client_fingerprint",
	"ssl_client_i_dn", "ssl_client_raw_cert", "ssl_client_s_dn", "ssl_client_serial", "ssl_client_sigalg", "ssl_client_v_end",
	"ssl_client_v_remain", "ssl_client_v_start", "ssl_client_verify", "ssl_curve", "ssl_curves", "ssl_ech_outer_server_name",
	"ssl_ech_status", "ssl_protocol", "ssl_server_name", "ssl_session_id", "ssl_session_reused", "ssl_sigalg", "ssl_sigalgs",
}

// streamBuiltins are the getters of streamVariables.
var streamBuiltins = func() map[string]Getter {
	all := map[string]Getter{}
	for _, name := range streamVariables {
		all[name] = builtin(name)
	}
	return all
}()

func streamBuiltin(name string) Getter { return streamBuiltins[name] }
