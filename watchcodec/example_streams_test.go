package watchcodec_test

import (
	"encoding/binary"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/culvert-go/culvert/watchcodec"
)

// A handler that is written a watch piece by piece passes the pieces on, and is called with each event.
func ExampleEventParser() {
	watch := watchcodec.NewEventParser(watchcodec.JSON, 0, func(e *watchcodec.Event) error {
		fmt.Printf("%s %s\n", e.Type, e.Object.Name())
		return nil
	})
	for _, piece := range []string{`{"type":"ADDED","object":{"meta`, `data":{"name":"a"}}}` + "\n", `{"type":"DELETED","object":{"metadata":{"name":"a"}}}`} {
		if _, err := io.WriteString(watch, piece); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(watch.Close())
	// Output:
	// ADDED a
	// DELETED a
	// <nil>
}

// The frames of a watch, without decoding them: each is one event, regardless of lines.
func ExampleJSONReader() {
	frames := watchcodec.NewJSONReader(strings.NewReader("{\"type\":\"ADDED\"}{\n  \"type\": \"DELETED\"\n}\n"), 0)
	for {
		frame, err := frames.Next()
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(strings.Fields(string(frame)))
	}
	// Output:
	// [{"type":"ADDED"}]
	// [{ "type": "DELETED" }]
	// EOF
}

// In protobuf a frame has its length in front.
func ExampleProtobufReader() {
	stream := binary.BigEndian.AppendUint32(nil, 5)
	stream = append(stream, "event"...)
	frames := watchcodec.NewProtobufReader(strings.NewReader(string(stream)), 0)
	frame, err := frames.Next()
	fmt.Printf("%s %v\n", frame, err)
	// Output: event <nil>
}

// A gateway refuses as an API server does, so that kubectl prints its reason.
func ExampleNewFailure() {
	w := httptest.NewRecorder()
	watchcodec.WriteStatus(w, watchcodec.NewFailure(http.StatusForbidden, "Forbidden", "pods are read-only here"))
	fmt.Println(w.Code, w.Body)
	// Output: 403 {"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"pods are read-only here","reason":"Forbidden","code":403}
}

// A browser watches over WebSocket what the next handler serves over HTTP.
func ExampleWebSocketWatch() {
	apiserver := http.NotFoundHandler() // a proxy to one
	http.Handle("/api/", watchcodec.WebSocketWatch(0)(apiserver))
}

// An event of a program's own, as a watch sends it.
func ExampleAppendEvent() {
	var o watchcodec.Object
	if err := o.Parse(watchcodec.JSON, "v1", "ConfigMap", []byte(`{"metadata":{"name":"a"},"data":{"k":"v"}}`)); err != nil {
		log.Fatal(err)
	}
	event, err := watchcodec.AppendEvent(nil, watchcodec.Modified, &o)
	fmt.Printf("%s%v\n", event, err)
	// Output:
	// {"type":"MODIFIED","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"},"data":{"k":"v"}}}
	// <nil>
}
