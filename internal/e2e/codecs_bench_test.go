package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/culvert-go/culvert/watchcodec"
)

// BenchmarkEvents compares watchcodec with what decodes, changes and encodes each event by
// Kubernetes' own codecs: one frame in, one frame out.
func BenchmarkEvents(b *testing.B) {
	slice := endpointSlice(100)
	pod := pod()
	works := []struct {
		name   string
		object runtime.Object
		change change
	}{
		{"peek", pod, change{edits: func(string) []watchcodec.Edit { return nil }, typed: func(runtime.Object) {}}},
		{"managedFields", pod, changes[1]},
		{"endpoints", slice, changes[3]},
	}
	for _, w := range works {
		for _, name := range []string{"JSON", "protobuf"} {
			format := watchcodec.JSON
			if name == "protobuf" {
				format = watchcodec.Protobuf
			}
			codec := codecs[format]
			frame := encodeEvent(b, w.object, codec, format)
			b.Run(fmt.Sprintf("%s/%s/culvert", w.name, name), func(b *testing.B) { benchBytes(b, format, frame, w.change) })
			b.Run(fmt.Sprintf("%s/%s/typed", w.name, name), func(b *testing.B) { benchTyped(b, format, frame, w.change, codec) })
		}
	}
}

func benchBytes(b *testing.B, format watchcodec.Format, stream []byte, c change) {
	events := watchcodec.NewEventReader(&endless{stream: stream}, format, 0)
	var out []byte
	b.SetBytes(int64(len(stream)))
	b.ReportAllocs()
	var edits []watchcodec.Edit
	known := false
	for b.Loop() {
		e, err := events.Next()
		if err != nil {
			b.Fatal(err)
		}
		if _, ok := e.Object.Label("app"); !ok || len(e.Object.Name()) == 0 {
			b.Fatal("no name or label")
		}
		if !known {
			edits, known = c.edits(string(e.Object.Kind())), true
		}
		if err := e.Object.Edit(edits...); err != nil {
			b.Fatal(err)
		}
		if out, err = e.Append(out[:0]); err != nil {
			b.Fatal(err)
		}
	}
}

func benchTyped(b *testing.B, format watchcodec.Format, stream []byte, c change, codec runtime.Serializer) {
	frame := bytes.TrimSuffix(stream, []byte("\n"))
	if format == watchcodec.Protobuf {
		frame = stream[4:]
	}
	b.SetBytes(int64(len(stream)))
	b.ReportAllocs()
	for b.Loop() {
		var event metav1.WatchEvent
		var err error
		if format == watchcodec.Protobuf {
			err = event.Unmarshal(frame)
		} else {
			_, _, err = codec.Decode(frame, nil, &event)
		}
		if err != nil {
			b.Fatal(err)
		}
		object, _, err := codec.Decode(event.Object.Raw, nil, nil)
		if err != nil {
			b.Fatal(err)
		}
		c.typed(object)
		var out bytes.Buffer
		if err := codec.Encode(object, &out); err != nil {
			b.Fatal(err)
		}
		event.Object.Raw = out.Bytes()
		if format == watchcodec.Protobuf {
			_, err = event.Marshal()
		} else {
			out.Reset()
			err = codec.Encode(&event, &out)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}

// endless is a stream that has no end.
type endless struct {
	stream []byte
	at     int
}

func (r *endless) Read(p []byte) (n int, err error) {
	for n < len(p) {
		m := copy(p[n:], r.stream[r.at:])
		n += m
		r.at = (r.at + m) % len(r.stream)
	}
	return n, nil
}

func encodeEvent(b *testing.B, object runtime.Object, codec runtime.Serializer, format watchcodec.Format) []byte {
	var out bytes.Buffer
	if err := codec.Encode(object, &out); err != nil {
		b.Fatal(err)
	}
	event := metav1.WatchEvent{Type: "MODIFIED", Object: runtime.RawExtension{Raw: out.Bytes()}}
	if format == watchcodec.JSON {
		return []byte(`{"type":"MODIFIED","object":` + string(bytes.TrimSuffix(out.Bytes(), []byte("\n"))) + "}\n")
	}
	body, err := event.Marshal()
	if err != nil {
		b.Fatal(err)
	}
	n := len(body)
	return append([]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}, body...)
}

// endpointSlice has n endpoints, every other one in a zone that ends in "a".
func endpointSlice(n int) *discoveryv1.EndpointSlice {
	yes, port, name, protocol := true, int32(8080), "http", corev1.ProtocolTCP
	s := &discoveryv1.EndpointSlice{
		TypeMeta:    metav1.TypeMeta{Kind: "EndpointSlice", APIVersion: "discovery.k8s.io/v1"},
		ObjectMeta:  metav1.ObjectMeta{Name: "web-x7k2p", Namespace: "shop", UID: "5ebb283b-eb18-49ff-af8f-2d2f1f5bb348", ResourceVersion: "12345", Labels: map[string]string{"app": "web", "kubernetes.io/service-name": "web"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: &name, Port: &port, Protocol: &protocol}},
	}
	for i := range n {
		zone, node := "zone-"+string(rune('a'+i%2)), fmt.Sprintf("edge-node-%02d", i%30)
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{
			Addresses:  []string{fmt.Sprintf("10.244.%d.%d", i/250, i%250)},
			Conditions: discoveryv1.EndpointConditions{Ready: &yes, Serving: &yes},
			NodeName:   &node,
			Zone:       &zone,
			TargetRef:  &corev1.ObjectReference{Kind: "Pod", Namespace: "shop", Name: fmt.Sprintf("web-%04d", i), UID: "1227db20-5f10-418b-82c9-5c85888e1968"},
		})
	}
	return s
}

// pod has 6 KB, as one has on a real cluster, and a third of it is managedFields.
func pod() *corev1.Pod {
	p := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{Name: "web-7d9c5b6f4-x2x8k", GenerateName: "web-7d9c5b6f4-", Namespace: "shop", UID: "1227db20-5f10-418b-82c9-5c85888e1968", ResourceVersion: "123456",
			Labels: map[string]string{"app": "web", "pod-template-hash": "7d9c5b6f4"}},
		Spec: corev1.PodSpec{NodeName: "edge-node-01", ServiceAccountName: "default"},
	}
	for i := range 4 {
		p.ManagedFields = append(p.ManagedFields, metav1.ManagedFieldsEntry{Manager: fmt.Sprintf("manager-%d", i), Operation: "Update", APIVersion: "v1", FieldsType: "FieldsV1",
			FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:generateName":{},"f:labels":{".":{},"f:app":{},"f:pod-template-hash":{}},"f:ownerReferences":{".":{},"k:{\"uid\":\"5ebb283b-eb18-49ff-af8f-2d2f1f5bb348\"}":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{".":{},"f:image":{},"f:imagePullPolicy":{},"f:name":{},"f:resources":{},"f:terminationMessagePath":{}}},"f:dnsPolicy":{}}}`)})
	}
	for i := range 3 {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: fmt.Sprintf("c%d", i), Image: "registry.example/web:1.2.3", ImagePullPolicy: "IfNotPresent",
			Command: []string{"/bin/web", "--listen=:8080", "--log-level=info"}, TerminationMessagePath: "/dev/termination-log",
			Env:          []corev1.EnvVar{{Name: "DATABASE_URL", Value: "postgres://db.shop.svc:5432/shop"}, {Name: "GREETING", Value: "hello, world"}},
			VolumeMounts: []corev1.VolumeMount{{Name: "kube-api-access-abcde", ReadOnly: true, MountPath: "/var/run/secrets/kubernetes.io/serviceaccount"}}})
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: "Ready", Status: "True", Reason: "PodReady", Message: "the pod is ready to serve requests"})
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: fmt.Sprintf("c%d", i), Ready: true, Image: "registry.example/web:1.2.3", ImageID: "registry.example/web@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"})
	}
	return p
}

// BenchmarkLists filters a list of 8,000 pods, some 40 MB, of which every other one is
// hidden, through the filter and by Kubernetes' codecs.
func BenchmarkLists(b *testing.B) {
	list := &corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
	for i := range 8000 {
		p := *pod()
		p.TypeMeta = metav1.TypeMeta{}
		p.Name = fmt.Sprintf("web-%04d", i)
		list.Items = append(list.Items, p)
	}
	for name, codec := range map[string]runtime.Serializer{
		"JSON":     json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, json.SerializerOptions{}),
		"protobuf": protobuf.NewSerializer(scheme.Scheme, scheme.Scheme),
	} {
		var body bytes.Buffer
		if err := codec.Encode(list, &body); err != nil {
			b.Fatal(err)
		}
		contentType := map[string]string{"JSON": "application/json", "protobuf": "application/vnd.kubernetes.protobuf"}[name]
		b.Run(name+"/culvert", func(b *testing.B) { benchList(b, body.Bytes(), contentType) })
		b.Run(name+"/typed", func(b *testing.B) {
			b.SetBytes(int64(body.Len()))
			for b.Loop() {
				object, _, err := codec.Decode(body.Bytes(), nil, nil)
				if err != nil {
					b.Fatal(err)
				}
				pods := object.(*corev1.PodList)
				pods.Items = slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool { return (p.Name[len(p.Name)-1]-'0')%2 == 0 })
				if err := codec.Encode(pods, io.Discard); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func benchList(b *testing.B, body []byte, contentType string) {
	filter, err := watchcodec.NewFilter(watchcodec.FilterOptions{Rewriter: func(*http.Request, watchcodec.Request) watchcodec.Rewriter {
		return func(o *watchcodec.Object) (bool, error) {
			name := o.Name()
			return (name[len(name)-1]-'0')%2 == 1, nil
		}
	}})
	if err != nil {
		b.Fatal(err)
	}
	h := filter(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		for rest := body; len(rest) > 0; rest = rest[min(len(rest), 32<<10):] {
			if _, err := w.Write(rest[:min(len(rest), 32<<10)]); err != nil {
				b.Fatal(err)
			}
		}
	}))
	r := httptest.NewRequest(http.MethodGet, "/api/v1/pods", nil)
	r.Header.Set("Accept", contentType)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		h.ServeHTTP(&nowhere{header: http.Header{}}, r)
	}
}

// nowhere is a client that takes everything.
type nowhere struct{ header http.Header }

func (n *nowhere) Header() http.Header         { return n.header }
func (n *nowhere) WriteHeader(int)             {}
func (n *nowhere) Write(p []byte) (int, error) { return len(p), nil }
