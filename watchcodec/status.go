package watchcodec

import (
	"encoding/json"
	"net/http"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// NewFailure returns a Status that reports a failure, as an API server sends it.
func NewFailure(code int, reason metav1.StatusReason, message string) *metav1.Status {
	return &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message,
	}
}

// encodeStatus encodes a Status. The encoders do not fail for such a value.
func encodeStatus(f Format, s *metav1.Status) []byte {
	if f == JSON {
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
	unknown := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: s.APIVersion, Kind: s.Kind}, Raw: raw}
	b, err := unknown.Marshal()
	if err != nil {
		panic(err)
	}
	return append([]byte(magic), b...)
}

// WriteStatus responds to a request with a Status, in JSON, which every Kubernetes client accepts.
// The caller has to bound the time that the client may take to accept it, by
// http.Server.WriteTimeout for instance.
func WriteStatus(w http.ResponseWriter, s *metav1.Status) {
	body := encodeStatus(JSON, s)
	h := w.Header()
	h.Set("Content-Type", jsonType)
	h.Set("Cache-Control", "no-cache, private")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(int(s.Code))
	_, _ = w.Write(body)
}

// AppendError appends an ERROR event, the last event of a watch, as a watch sends it.
func AppendError(dst []byte, f Format, s *metav1.Status) []byte {
	object := encodeStatus(f, s)
	if f == JSON {
		return append(append(append(dst, `{"type":"ERROR","object":`...), object...), "}\n"...)
	}
	event := metav1.WatchEvent{Type: string(Error), Object: runtime.RawExtension{Raw: object}}
	b, err := event.Marshal()
	if err != nil {
		panic(err) // as in encodeStatus
	}
	n := len(b)
	return append(append(dst, byte(n>>24), byte(n>>16), byte(n>>8), byte(n)), b...)
}
