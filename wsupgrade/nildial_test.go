package wsupgrade_test

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/wsupgrade"
)

// A Dial that returns neither a connection nor an error is a dial error, as in net/http, for an
// upgrade and for a CONNECT.
func TestDialWithoutAConnection(t *testing.T) {
	const want = "wsupgrade: Options.Dial returned (nil, nil)"
	o := wsupgrade.Options{Dial: func(context.Context, string, string) (net.Conn, error) { return nil, nil }}
	for _, scheme := range []string{"http", "https"} {
		in, err := http.ReadRequest(bufio.NewReader(strings.NewReader(handshake)))
		if err != nil {
			t.Fatal(err)
		}
		out := outboundTo(in, "192.0.2.1:1")
		out.URL.Scheme = scheme
		_, err = forwarder(t, o).Forward(httptest.NewRecorder(), in, out)
		if e := asError(err); e == nil || e.Kind != culvert.DialFailed || e.BytesSent || e.Err.Error() != want {
			t.Errorf("%s: %#v", scheme, e)
		}
	}
	w := httptest.NewRecorder()
	connecting(t, "192.0.2.1:1", o).ServeHTTP(w, connectRequest())
	if w.Code != http.StatusBadGateway {
		t.Errorf("a CONNECT: %d", w.Code)
	}
}
