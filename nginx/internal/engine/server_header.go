package engine

import (
	"net/http"
	"slices"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
)

// serverHeaderModule sets the field Server, and signs the built-in pages.
var serverHeaderModule = module{
	directives: []directive{
		{name: "server_tokens", compile: serverTokens},
	},
	hooks: hooks{header: setServerHeader},
}

// Emulated is the version of nginx whose behaviour culvert has, as the field Server has it.
const Emulated = "nginx/" + vars.NginxVersion

var tokensSlot = newSlot(Emulated)

// serverTokens compiles "server_tokens on|off|build". The build of nginx has a name only if it was given one.
func serverTokens(_ *compiler, l *level, d *conf.Directive) error {
	s := tokensSlot.edit(l)
	switch d.Args[0] {
	case "on", "build":
		*s = Emulated
	case "off":
		*s = "nginx"
	default:
		return d.Errorf("invalid value \"%s\"", d.Args[0])
	}
	return nil
}

// setServerHeader names the server, unless the upstream's name is let through, or by proxy_pass_header that it has none.
func setServerHeader(x *exchange, h http.Header) {
	if h["Server"] != nil || x.passes("Server") && slices.Contains((*passSlot.of(x.level)).family.hidden, "Server") {
		return
	}
	h.Set("Server", *tokensSlot.of(x.level))
}
