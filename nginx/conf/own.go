package conf

import (
	"slices"

	crossplane "github.com/nginxinc/nginx-go-crossplane"
)

// ownDirective is a directive that nginx does not have.
type ownDirective struct {
	like  string // the directive of nginx's that has its contexts and its arguments
	about string // for the README
}

// own lists the directives that nginx does not have. Their names begin with "culvert_", so that none is ever one of nginx's or of a module.
var own = map[string]ownDirective{
	"culvert_expire_errors": {"chunked_transfer_encoding", "`off` sends error pages as nginx does, [without `Cache-Control` and `Expires`](COMING-FROM-NGINX.md#what-is-better-without-a-change)"},
	"culvert_handler":       {"fastcgi_pass", "the location is served by [a handler of the program](#handlers-directives-and-variables-of-your-own)"},
	"culvert_status":        {"random_index", "`on` serves the [status page](COMING-FROM-NGINX.md#the-status-page) at the location"},
}

// unlisted are directives of nginx's that crossplane does not know, with one that has their contexts and arguments.
var unlisted = map[string]string{
	"acme_certificate": "server_name", "acme_issuer": "upstream", "acme_shared_zone": "variables_hash_max_size",
	"uwsgi_string": "uwsgi_modifier1", "post_action": "root", "proxy_socket_rcvbuf": "proxy_buffer_size", "proxy_socket_sndbuf": "proxy_buffer_size",
	"tunnel_socket_rcvbuf": "proxy_buffer_size", "tunnel_socket_sndbuf": "proxy_buffer_size",
}

// insideIssuer are those that stand inside acme_issuer alone, where crossplane checks nothing.
var insideIssuer = []string{"accept_terms_of_service", "account_key", "challenge", "contact", "external_account_key", "ssl_verify", "state_path", "uri"}

// loaded are modules that nginx loads, and that files of those who have used them contain: directives of them are refused by name, not as
// unknown ones.
var loaded = []struct {
	prefix string
	match  crossplane.MatchFunc
	reason string
}{
	{"js_", crossplane.MatchNjsLatest, "there is no JavaScript"},
}

// matchLoaded is a crossplane.MatchFunc for their directives.
func matchLoaded(name string) (masks []uint, known bool) {
	for _, m := range loaded {
		if masks, known = m.match(name); known {
			return masks, true
		}
	}
	return nil, false
}

// matchOwn is a crossplane.MatchFunc for both.
func matchOwn(name string) (masks []uint, known bool) {
	if slices.Contains(insideIssuer, name) {
		return []uint{0}, true
	}
	like, known := unlisted[name]
	if d, ours := own[name]; ours {
		like, known = d.like, true
	}
	if !known {
		return nil, false
	}
	return crossplane.MatchOssLatest(like)
}

// Known reports whether nginx's open-source modules or culvert itself have a directive of the name, whether it is implemented or not.
func Known(name string) bool {
	_, nginx := crossplane.MatchOssLatest(name)
	_, ours := matchOwn(name)
	return nginx || ours
}
