package static

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/culvert-go/culvert/internal/bufpool"
	"github.com/culvert-go/culvert/internal/deadline"
)

// Content is what Serve sends.
type Content struct {
	// File is the opened file, which the caller closes after Serve.
	File *File
	// Size is its length in bytes and ModTime when it was changed.
	Size    int64
	ModTime time.Time
	// Prefix is sent in front of the file, and Skip is how much of the file is left out at its
	// beginning. Size is the length of what remains, with the prefix.
	Prefix string
	Skip   int64
	// Shown is the Last-Modified that the client knows, if it is another than ModTime: If-Range is compared with it. The zero
	// time means ModTime.
	Shown time.Time
	// Type is the Content-Type, and PartType that of each of several ranges; "" means Type.
	Type, PartType string
	// Since is the meaning of If-Modified-Since. NoETag omits the ETag, NoRanges sends the whole
	// file.
	Since    Since
	NoETag   bool
	NoRanges bool
	// MaxRanges bounds the ranges of a request; one with more gets the whole file. 0 means no bound.
	MaxRanges int
	// SendTimeout bounds the time that the client may take to accept 256 KiB; 0 means no bound.
	SendTimeout time.Duration
	// Whole turns conditions and ranges off: the file is the content of an error page.
	Whole bool
}

// Serve serves a file for GET and HEAD. It returns 0 if it has sent the response, or the status
// of an error page: 412 if a condition fails, 416 if no range of the request is in the file.
func Serve(w http.ResponseWriter, r *http.Request, c Content) int {
	h := w.Header()
	etag := ""
	if !c.NoETag {
		etag = ETag(c.ModTime, c.Size)
	}
	if c.Whole {
		setETag(h, etag)
		return whole(w, r, c)
	}
	switch conditions(r.Header, etag, c) {
	case http.StatusPreconditionFailed:
		return http.StatusPreconditionFailed
	case http.StatusNotModified:
		h.Set("Last-Modified", c.ModTime.UTC().Format(http.TimeFormat))
		setETag(h, etag)
		w.WriteHeader(http.StatusNotModified)
		return 0
	}
	shown := c.Shown
	if shown.IsZero() {
		shown = c.ModTime
	}
	ranges, ok := requestedRanges(r.Header, etag, shown, c.Size)
	if c.NoRanges || c.MaxRanges > 0 && len(ranges) > c.MaxRanges {
		ranges, ok = nil, true
	}
	if !ok {
		h.Set("Content-Range", fmt.Sprintf("bytes */%d", c.Size))
		return http.StatusRequestedRangeNotSatisfiable
	}
	h.Set("Last-Modified", c.ModTime.UTC().Format(http.TimeFormat))
	setETag(h, etag)
	switch len(ranges) {
	case 0:
		if !c.NoRanges {
			h.Set("Accept-Ranges", "bytes")
		}
		return whole(w, r, c)
	case 1:
		return single(w, r, c, ranges[0])
	}
	return multiple(w, r, c, ranges)
}

// ETag returns nginx's: the time of the change in seconds and the length, both in hexadecimal.
func ETag(modified time.Time, size int64) string {
	tag := append(make([]byte, 0, 32), '"')
	tag = strconv.AppendInt(tag, modified.Unix(), 16)
	tag = strconv.AppendInt(append(tag, '-'), size, 16)
	return string(append(tag, '"'))
}

func setETag(h http.Header, etag string) {
	if etag != "" {
		h.Set("Etag", etag)
	}
}

func whole(w http.ResponseWriter, r *http.Request, c Content) int {
	setType(w, c.Type)
	w.Header().Set("Content-Length", strconv.FormatInt(c.Size, 10))
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		send(w, r, c, span{0, c.Size})
	}
	return 0
}

func single(w http.ResponseWriter, r *http.Request, c Content, part span) int {
	setType(w, c.Type)
	w.Header().Set("Content-Range", part.contentRange(c.Size))
	w.Header().Set("Content-Length", strconv.FormatInt(part.length(), 10))
	w.WriteHeader(http.StatusPartialContent)
	if r.Method != http.MethodHead {
		send(w, r, c, part)
	}
	return 0
}

// setType keeps net/http from guessing a type if there is none.
func setType(w http.ResponseWriter, t string) {
	if t == "" {
		w.Header()["Content-Type"] = nil
		return
	}
	w.Header().Set("Content-Type", t)
}

// send sends a part of the file.
func send(w http.ResponseWriter, r *http.Request, c Content, part span) {
	b := deadline.Bound(w, r, c.SendTimeout)
	defer b.Leave()
	sendPart(b, c, part)
}

// sendPart sends a part of the content. If the file has become shorter, or the client has disconnected or is too slow, the
// response is incomplete, so it is aborted.
func sendPart(b *deadline.Bounded, c Content, part span) {
	if n := int64(len(c.Prefix)); part.start < n {
		write(b, c.Prefix[part.start:min(part.end, n)])
		if part.start = n; part.start >= part.end {
			return
		}
	}
	from := c.Skip - int64(len(c.Prefix)) // of the file to the content
	part = span{part.start + from, part.end + from}
	if part.length() <= small {
		sendSmall(b, c.File, part)
		return
	}
	if part.start > 0 && c.File.seek(part.start) != nil {
		panic(http.ErrAbortHandler)
	}
	if err := b.SendFile(c.File, part.length()); err != nil {
		panic(http.ErrAbortHandler)
	}
}

// small is what is read and sent together with the header, by one system call. To have the kernel move it takes two more.
const small = 32 << 10

// sendSmall sends a small part of a file.
func sendSmall(b *deadline.Bounded, f *File, part span) {
	buf := bufpool.GetFor(small)
	defer bufpool.Put(buf)
	length, n := int(part.length()), 0
	for n < length {
		m, err := f.readAt(buf[n:length], part.start+int64(n))
		if n += m; err != nil {
			break
		}
	}
	_, err := b.Write(buf[:n])
	if n < length && err == nil {
		err = cmp.Or(b.FlushError(), io.ErrUnexpectedEOF) // the client receives what there is
	}
	if err != nil {
		panic(http.ErrAbortHandler)
	}
}
