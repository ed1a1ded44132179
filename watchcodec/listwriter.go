package watchcodec

import (
	"bufio"
	"encoding/binary"
	"io"

	"github.com/culvert-go/culvert/watchcodec/internal/scan"
)

// List is a list to be written.
type List struct {
	// Format is how the list and its items are encoded.
	Format Format
	// APIVersion and Kind are those of the items: "v1" and "Pod" make a PodList.
	APIVersion, Kind string
	// ResourceVersion is the resourceVersion of the list.
	ResourceVersion string
	// Items are encoded objects, as Object.Parse accepts them and Value.Raw returns them.
	Items [][]byte
}

// WriteTo writes the list as an API server does.
func (l *List) WriteTo(w io.Writer) (int64, error) {
	b := &countingWriter{w: w}
	buffered := bufio.NewWriterSize(b, 32<<10)
	if l.Format == Protobuf {
		l.protobuf(buffered)
	} else {
		l.json(buffered)
	}
	err := buffered.Flush() // returns the error of an earlier write, too
	return b.n, err
}

func (l *List) json(w *bufio.Writer) {
	_, _ = w.WriteString(`{"kind":` + quoted(l.Kind+"List") + `,"apiVersion":` + quoted(l.APIVersion) + `,"metadata":{"resourceVersion":` + quoted(l.ResourceVersion) + `},"items":[`)
	for i, item := range l.Items {
		if i > 0 {
			_ = w.WriteByte(',')
		}
		_, _ = w.Write(item)
	}
	_, _ = w.WriteString("]}\n")
}

func (l *List) protobuf(w *bufio.Writer) {
	meta := scan.AppendBytesField(nil, 1, nil) // selfLink, which is always written
	meta = scan.AppendBytesField(meta, listVersion, []byte(l.ResourceVersion))
	meta = scan.AppendBytesField(meta, 3, nil) // continue
	meta = scan.AppendBytesField(nil, listMetadata, meta)
	size := len(meta)
	for _, item := range l.Items {
		size += 1 + scan.UvarintLen(uint64(len(item))) + len(item)
	}
	_, _ = w.Write(appendSealedHead(nil, []byte(l.APIVersion), []byte(l.Kind+"List"), size))
	_, _ = w.Write(meta)
	var head [1 + binary.MaxVarintLen64]byte
	for _, item := range l.Items {
		_, _ = w.Write(binary.AppendUvarint(append(head[:0], listItems<<3|scan.WireBytes), uint64(len(item))))
		_, _ = w.Write(item)
	}
	_, _ = w.WriteString(sealedTail)
}

type countingWriter struct {
	w io.Writer
	n int64
}

func (c *countingWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}
