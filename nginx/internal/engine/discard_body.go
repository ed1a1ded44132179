package engine

import (
	"errors"
	"io"
	"net"
	"net/http"

	"github.com/culvert-go/culvert/internal/bufpool"
	"github.com/culvert-go/culvert/internal/clientbody"
	httpheader "github.com/culvert-go/culvert/internal/header"
)

// maxDiscarded bounds what is read of a body that has no use.
const maxDiscarded = 64 << 10

// continueBody sends the 100 that a client of HTTP/1.1 waits for (ngx_http_test_expect): its body has no use, but is to be read, and
// the connection is kept. Error pages, and what is served instead of an upstream's response, do not.
func continueBody(x *exchange, w http.ResponseWriter) {
	if x.failed || x.errStatus != 0 || x.Body != nil {
		return
	}
	if x.main == nil && x.HTTP.ProtoMajor == 1 && x.HTTP.ProtoMinor > 0 && httpheader.HasToken(x.HTTP.Header["Expect"], "100-continue") {
		w.WriteHeader(http.StatusContinue)
	}
}

// discardBody reads what was received of a chunked body that has no use, as nginx does before it responds. It returns 400 if a chunk is
// malformed: what follows it may be another request, or a part of the body. What has yet to be received is the server's to read.
func discardBody(x *exchange) int {
	body := x.HTTP.Body
	if x.main != nil || x.HTTP.ProtoMajor != 1 || x.HTTP.ContentLength >= 0 || body == nil {
		return 0
	}
	buf := bufpool.Get()
	defer bufpool.Put(buf)
	for left := maxDiscarded; left > 0 && clientbody.Ready(body); {
		n, err := body.Read(buf)
		if left -= n; err == nil {
			continue
		}
		if err == io.EOF || err == io.ErrUnexpectedEOF || errors.As(err, new(net.Error)) || bodyStatus(err) != http.StatusBadRequest {
			return 0
		}
		x.logAt(levelInfo, "client sent invalid chunked body", "")
		return http.StatusBadRequest
	}
	return 0
}
