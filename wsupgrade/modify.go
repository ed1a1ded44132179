package wsupgrade

import (
	"maps"
	"net/http"
	"strings"

	"github.com/culvert-go/culvert/internal/clientside"
	"github.com/culvert-go/culvert/internal/header"
	"github.com/culvert-go/culvert/internal/relay"
)

// modifySwitching calls the Modify of out, if it has one, with a valid 101, and reports whether the
// response is still one. If not, it has responded to the client, without a tunnel.
func (f *Forwarder) modifySwitching(w http.ResponseWriter, in, out *http.Request, resp *http.Response, protocol string) (switching bool, err error) {
	modify := relay.ModifyOf(out.Context())
	if modify == nil {
		return true, nil
	}
	header.SanitizeResponse(resp.StatusCode, resp.Header, protocol)
	handshake := resp.Header.Clone()
	maps.DeleteFunc(handshake, notOfHandshake)
	instead, failure := modify(resp)
	maps.DeleteFunc(resp.Header, func(name string, _ []string) bool { return !notOfHandshake(name, nil) })
	status := resp.StatusCode
	resp.StatusCode = http.StatusSwitchingProtocols
	if status == http.StatusSwitchingProtocols && instead == nil && failure == nil {
		maps.Copy(resp.Header, handshake)
		return true, nil
	}
	client := clientside.New(w, in)
	defer client.End()
	_, err = relay.Response(client, in, resp, relay.Options{WriteTimeout: f.handshakeTimeout, Modify: func(resp *http.Response) (http.Handler, error) {
		resp.StatusCode = status
		return instead, failure
	}})
	return false, err
}

// notOfHandshake reports whether a field of a 101 is none that its two ends have agreed by.
func notOfHandshake(name string, _ []string) bool {
	return name != "Connection" && name != "Upgrade" && !strings.HasPrefix(name, "Sec-Websocket-")
}
