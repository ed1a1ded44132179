package watchcodec_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/watchcodec"
)

// recording is a response of a real kube-apiserver v1.36.4, see testdata/recordings.
type recording struct {
	name, target, accept, status, contentType, encoding string
}

// largest is a list of 13 megabytes, more than all others together.
const largest = "list/list-pods-ALL-json-gzip"

// recorded returns the recordings for which want returns true, largest only where tests run at their full size.
func recorded(t testing.TB, want func(recording) bool) (all []recording) {
	t.Helper()
	index, err := os.Open("testdata/recordings/index.tsv")
	if err != nil {
		t.Fatal(err)
	}
	defer index.Close()
	for lines := bufio.NewScanner(index); lines.Scan(); {
		f := strings.Split(lines.Text(), "\t")
		if r := (recording{f[0], f[1], f[2], f[3], f[4], f[5]}); want(r) && (r.name != largest || wiretest.Full()) {
			all = append(all, r)
		}
	}
	if len(all) == 0 {
		t.Fatal("no recordings")
	}
	return all
}

// body returns the recorded body without the server's compression.
func (r recording) body(t testing.TB) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata/recordings", r.name+".gz"))
	if err != nil {
		t.Fatal(err)
	}
	b = gunzip(t, b)
	if r.encoding == "gzip" {
		b = gunzip(t, b)
	}
	return b
}

func gunzip(t testing.TB, b []byte) []byte {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	b, err = io.ReadAll(z)
	if err != nil && err != io.ErrUnexpectedEOF { // a recording ends where it was stopped
		t.Fatal(err)
	}
	return b
}

func (r recording) format() watchcodec.Format {
	if strings.HasPrefix(r.contentType, "application/vnd.kubernetes.protobuf") {
		return watchcodec.Protobuf
	}
	return watchcodec.JSON
}

// isWatch reports whether the recording is a stream of events.
func isWatch(r recording) bool {
	return r.status == "200" && (strings.Contains(r.target, "watch=") || strings.Contains(r.target, "/watch/")) && strings.HasPrefix(r.contentType, "application/")
}

// frames is implemented by JSONReader and ProtobufReader.
type frames interface{ Next() ([]byte, error) }

func newReader(f watchcodec.Format, r io.Reader) frames {
	if f == watchcodec.Protobuf {
		return watchcodec.NewProtobufReader(r, 0)
	}
	return watchcodec.NewJSONReader(r, 0)
}

// random reads pieces of all sizes.
type random struct {
	r   io.Reader
	rnd *rand.Rand
}

func (r random) Read(p []byte) (int, error) {
	return r.r.Read(p[:min(len(p), 1+r.rnd.IntN(5000))])
}

var ways = map[string]func(io.Reader) io.Reader{
	"whole":        func(r io.Reader) io.Reader { return r },
	"byte by byte": iotest.OneByteReader,
	"random":       func(r io.Reader) io.Reader { return random{r, rand.New(rand.NewPCG(1, 2))} },
}

// pass sends a body through an Event, and returns the result and the number of events.
func pass(f watchcodec.Format, body io.Reader, edit func(*watchcodec.Event) error) (out []byte, n int, err error) {
	r := newReader(f, body)
	var e watchcodec.Event
	for ; ; n++ {
		frame, err := r.Next()
		if err == io.EOF {
			return out, n, nil
		}
		if err == nil {
			err = e.Decode(f, frame)
		}
		if err == nil {
			err = edit(&e)
		}
		if err == nil {
			out, err = e.Append(out)
		}
		if err != nil {
			return out, n, fmt.Errorf("event %d: %w", n, err)
		}
	}
}

// TestRecordingsPassUnchanged: every recorded watch passes byte for byte, however the reads are
// split.
func TestRecordingsPassUnchanged(t *testing.T) {
	total := 0
	for _, r := range recorded(t, isWatch) {
		body := r.body(t)
		for way, reader := range ways {
			out, n, err := pass(r.format(), reader(bytes.NewReader(body)), func(*watchcodec.Event) error { return nil })
			if err != nil || !bytes.Equal(out, body) {
				t.Errorf("%s, %s: %d events, %d of %d bytes: %v", r.name, way, n, len(out), len(body), err)
			}
			total += n
		}
	}
	if total < 5000 {
		t.Errorf("%d events in all recordings", total)
	}
}

// TestRecordingsEdited: an edit gives what decoding JSON, the same change and encoding give, except
// for the order of keys. (internal/e2e compares bytes with those of Kubernetes' own codecs, in both
// formats.)
func TestRecordingsEdited(t *testing.T) {
	for _, r := range recorded(t, func(r recording) bool { return isWatch(r) && r.format() == watchcodec.JSON }) {
		body := r.body(t)
		var events []string
		_, _, err := pass(watchcodec.JSON, bytes.NewReader(body), func(e *watchcodec.Event) error {
			if err := e.Object.Edit(watchcodec.Delete(watchcodec.ManagedFields()...), watchcodec.Set(`a "b"`, watchcodec.Label("zone")...), watchcodec.Delete(watchcodec.Annotation("topologyKeys")...)); err != nil {
				return err
			}
			out, err := e.Append(nil)
			events = append(events, string(out))
			return err
		})
		if err != nil {
			t.Errorf("%s: %v", r.name, err)
			continue
		}
		for i, line := range strings.Split(string(body), "\n")[:len(events)] {
			var got, want map[string]any
			if err := json.Unmarshal([]byte(events[i]), &got); err != nil {
				t.Fatalf("%s: %v in %s", r.name, err, events[i])
			}
			if err := json.Unmarshal([]byte(line), &want); err != nil {
				t.Fatal(err)
			}
			change(want["object"].(map[string]any))
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s, event %d:\n%s\nwant as from\n%s", r.name, i, events[i], line)
				break
			}
		}
	}
}

func change(object map[string]any) {
	meta, ok := object["metadata"].(map[string]any)
	if !ok {
		meta = map[string]any{}
		object["metadata"] = meta
	}
	delete(meta, "managedFields")
	labels, ok := meta["labels"].(map[string]any)
	if !ok {
		labels = map[string]any{}
		meta["labels"] = labels
	}
	labels["zone"] = `a "b"`
	if annotations, ok := meta["annotations"].(map[string]any); ok {
		if delete(annotations, "topologyKeys"); len(annotations) == 0 {
			delete(meta, "annotations")
		}
	}
}
