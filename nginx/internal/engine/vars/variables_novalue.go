package vars

// novalue are variables of nginx's own modules that never have a value here, so that files that name them, most often in a log
// format, load.
var novalue = map[string]Getter{
	// crypto/tls does not report them to a server, or has no such thing.
	"ssl_sigalg": none, "ssl_client_sigalg": none,
	"ssl_ech_status": none, "ssl_ech_outer_server_name": none,

	// The kernel's figures of the client's connection are not read.
	"tcpinfo_rtt": none, "tcpinfo_rttvar": none, "tcpinfo_snd_cwnd": none, "tcpinfo_rcv_space": none,

	// Their modules are not there.
	"memcached_key": none,
	"uid_reset":     none,
}
