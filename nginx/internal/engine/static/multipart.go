package static

import (
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"net/http"
	"strconv"

	"github.com/culvert-go/culvert/internal/deadline"
)

// multiple sends multipart/byteranges. The boundary is 20 digits, as in nginx.
func multiple(w http.ResponseWriter, r *http.Request, c Content, parts []span) int {
	boundary := boundary()
	headers := make([]string, len(parts))
	tail := "\r\n--" + boundary + "--\r\n"
	length := int64(len(tail))
	for i, p := range parts {
		headers[i] = "\r\n--" + boundary + "\r\n"
		if t := cmp.Or(c.PartType, c.Type); t != "" {
			headers[i] += "Content-Type: " + t + "\r\n"
		}
		headers[i] += "Content-Range: " + p.contentRange(c.Size) + "\r\n\r\n"
		length += int64(len(headers[i])) + p.length()
	}
	w.Header().Set("Content-Type", "multipart/byteranges; boundary="+boundary)
	w.Header().Set("Content-Length", strconv.FormatInt(length, 10))
	w.WriteHeader(http.StatusPartialContent)
	if r.Method == http.MethodHead {
		return 0
	}
	b := deadline.Bound(w, r, c.SendTimeout)
	defer b.Leave()
	for i, p := range parts {
		write(b, headers[i])
		sendPart(b, c, p)
	}
	write(b, tail)
	return 0
}

func boundary() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return fmt.Sprintf("%020d", binary.BigEndian.Uint64(b[:]))
}

func write(w http.ResponseWriter, s string) {
	if _, err := w.Write([]byte(s)); err != nil {
		panic(http.ErrAbortHandler)
	}
}
