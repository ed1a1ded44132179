package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/culvert-go/culvert/watchcodec"
)

// object is one that a kube-apiserver has sent.
type object struct {
	name             string // of the recording
	format           watchcodec.Format
	apiVersion, kind string
	raw              []byte
}

// perRecording is how many objects of a recording are used.
const perRecording = 8

// recordedObjects are those of watchcodec/testdata, which is looked for from the working directory
// upwards.
var recordedObjects = sync.OnceValue(func() (all []object) {
	dir := "watchcodec/testdata/recordings"
	for range 5 {
		if _, err := os.Stat(dir); err == nil {
			break
		}
		dir = filepath.Join("..", dir)
	}
	for line := range strings.Lines(string(must(os.ReadFile(filepath.Join(dir, "index.tsv"))))) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t") // name, target, Accept, status, type, encoding
		format, ok := watchcodec.FormatOf(f[4])
		if !ok || f[3] != "200" || !strings.Contains(f[1], "watch") {
			continue
		}
		body := unzipped(must(os.ReadFile(filepath.Join(dir, f[0]+".gz"))))
		if f[5] == "gzip" {
			body = unzipped(body)
		}
		all = append(all, objectsOf(f[0], format, body)...)
	}
	return all
})

func unzipped(b []byte) []byte {
	text, err := io.ReadAll(must(gzip.NewReader(bytes.NewReader(b))))
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) { // a recording ends where it was stopped
		panic(err)
	}
	return text
}

// objectsOf returns some of the objects of a watch.
func objectsOf(name string, format watchcodec.Format, body []byte) (some []object) {
	events := watchcodec.NewEventReader(bufio.NewReader(bytes.NewReader(body)), format, 0)
	for len(some) < perRecording {
		e, err := events.Next()
		if err != nil {
			break
		}
		if e.Type == watchcodec.Bookmark || e.Type == watchcodec.Error {
			continue
		}
		o := &e.Object
		some = append(some, object{name, format, string(o.APIVersion()), string(o.Kind()), bytes.Clone(o.Value().Raw())})
	}
	return some
}
