package watchtest

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/culvert-go/culvert/watchcodec"
)

func gvk(apiVersion, kind string) schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(apiVersion, kind)
}

// format is the encoding of one response.
type format struct {
	encoder                runtime.Encoder
	protobuf               bool
	contentType, watchType string
}

// negotiate selects protobuf if the client's Accept names it before JSON.
func (s *Server) negotiate(r *http.Request) format {
	accept := r.Header.Get("Accept")
	protobuf, inJSON := strings.Index(accept, "application/vnd.kubernetes.protobuf"), strings.Index(accept, "application/json")
	if s.o.Protobuf != nil && protobuf >= 0 && (inJSON < 0 || protobuf < inJSON) {
		return format{s.o.Protobuf, true, "application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf;stream=watch"}
	}
	return format{s.o.JSON, false, "application/json", "application/json"}
}

// object encodes an object. It panics if that fails: the object is the test's.
func (f format) object(object runtime.Object) []byte {
	var b bytes.Buffer
	if err := f.encoder.Encode(object, &b); err != nil {
		panic(err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

const magic = "k8s\x00" // the prefix of objects in protobuf

func (f format) event(kind watchcodec.EventType, object []byte) []byte {
	if !f.protobuf {
		return []byte(`{"type":"` + string(kind) + `","object":` + string(object) + "}\n")
	}
	event := metav1.WatchEvent{Type: string(kind), Object: runtime.RawExtension{Raw: object}}
	b, err := event.Marshal()
	if err != nil {
		panic(err)
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...)
}

// status encodes a Status.
func (f format) status(code int, reason metav1.StatusReason, message string) []byte {
	s := &metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message}
	if !f.protobuf {
		b, err := json.Marshal(s)
		if err != nil {
			panic(err)
		}
		return b
	}
	raw, err := s.Marshal()
	if err != nil {
		panic(err)
	}
	return sealed("v1", "Status", raw)
}

// sealed encodes a protobuf message in the envelope of an object.
func sealed(apiVersion, kind string, raw []byte) []byte {
	b, err := (&runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: apiVersion, Kind: kind}, Raw: raw}).Marshal()
	if err != nil {
		panic(err)
	}
	return append([]byte(magic), b...)
}

func (s *Server) refuse(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(format{}.status(code, reason, message))
}

func (s *Server) list(w http.ResponseWriter, r *http.Request, req watchcodec.Request) {
	objects, version := s.current(req.Namespace)
	if req.Options.ResourceVersionMatch == metav1.ResourceVersionMatchExact {
		version, _ = strconv.Atoi(req.Options.ResourceVersion)
		var ok bool
		if objects, ok = s.at(version, req.Namespace); !ok {
			s.refuse(w, http.StatusGone, metav1.StatusReasonExpired, "The resourceVersion for the provided list is too old.")
			return
		}
	}
	f := s.negotiate(r)
	w.Header().Set("Content-Type", f.contentType)
	list := metav1.ListMeta{ResourceVersion: strconv.Itoa(version)}
	if !f.protobuf {
		items := make([]json.RawMessage, 0, len(objects))
		for _, object := range objects {
			items = append(items, f.object(object))
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"kind": s.o.Kind + "List", "apiVersion": s.o.APIVersion, "metadata": list, "items": items})
		return
	}
	meta, err := list.Marshal()
	if err != nil {
		panic(err)
	}
	raw := appendField(nil, 1, meta)
	for _, object := range objects {
		var item runtime.Unknown
		if err := item.Unmarshal(bytes.TrimPrefix(f.object(object), []byte(magic))); err != nil {
			panic(err)
		}
		raw = appendField(raw, 2, item.Raw)
	}
	_, _ = w.Write(sealed(s.o.APIVersion, s.o.Kind+"List", raw))
}

// appendField appends a field of bytes with a small number.
func appendField(b []byte, number byte, content []byte) []byte {
	return append(binary.AppendUvarint(append(b, number<<3|2), uint64(len(content))), content...)
}

// watch sends the changes since the client's resourceVersion, and then those that follow.
func (s *Server) watch(w http.ResponseWriter, r *http.Request, req watchcodec.Request) {
	initial := req.Options.SendInitialEvents != nil && *req.Options.SendInitialEvents
	if initial && s.o.NoWatchList {
		s.refuse(w, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled")
		return
	}
	f := s.negotiate(r)
	w.Header().Set("Content-Type", f.watchType)
	stream := &stream{w: w, flush: http.NewResponseController(w).Flush, f: f}
	stream.send(nil) // the header must not wait for an event
	version, _ := strconv.Atoi(req.Options.ResourceVersion)
	if initial || version == 0 {
		var objects []runtime.Object
		objects, version = s.current(req.Namespace)
		for _, object := range objects {
			stream.send(f.event(watchcodec.Added, f.object(object)))
		}
		if initial {
			stream.send(s.bookmark(f, version, `{"k8s.io/initial-events-end":"true"}`))
		}
	}
	timeout := time.Hour
	if seconds := req.Options.TimeoutSeconds; seconds != nil {
		timeout = time.Duration(min(*seconds, math.MaxInt64/int64(time.Second))) * time.Second
	}
	s.follow(r, req, stream, version, timeout)
}

// follow sends changes until the client disconnects or the timeout has passed.
func (s *Server) follow(r *http.Request, req watchcodec.Request, stream *stream, version int, timeout time.Duration) {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	for stream.err == nil {
		changes, forgotten, more := s.since(version)
		if forgotten {
			stream.send(stream.f.event(watchcodec.Error, stream.f.status(http.StatusGone, metav1.StatusReasonExpired, "too old resource version: "+strconv.Itoa(version))))
			return
		}
		for _, c := range changes {
			if version = c.version; req.Namespace == "" || accessor(c.object).GetNamespace() == req.Namespace {
				stream.send(stream.f.event(c.kind, stream.f.object(c.object)))
			}
		}
		select {
		case <-more:
		case <-timer.C:
			return
		case <-r.Context().Done():
			return
		}
	}
}

// bookmark returns a BOOKMARK event.
func (s *Server) bookmark(f format, version int, annotations string) []byte {
	object := []byte(`{"kind":"` + s.o.Kind + `","apiVersion":"` + s.o.APIVersion + `","metadata":{"resourceVersion":"` + strconv.Itoa(version) + `","annotations":` + annotations + `}}`)
	if f.protobuf {
		meta := metav1.ObjectMeta{ResourceVersion: strconv.Itoa(version)}
		if err := json.Unmarshal([]byte(annotations), &meta.Annotations); err != nil {
			panic(err)
		}
		raw, err := meta.Marshal()
		if err != nil {
			panic(err)
		}
		object = sealed(s.o.APIVersion, s.o.Kind, appendField(nil, 1, raw))
	}
	return f.event(watchcodec.Bookmark, object)
}

// stream is the response to a watch.
type stream struct {
	w     http.ResponseWriter
	flush func() error
	f     format
	err   error
}

func (s *stream) send(p []byte) {
	if s.err != nil {
		return
	}
	if _, s.err = s.w.Write(p); s.err == nil {
		s.err = s.flush()
	}
}
