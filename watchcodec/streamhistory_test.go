package watchcodec_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	carpv1 "k8s.io/apimachinery/pkg/apis/testapigroup/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/culvert-go/culvert/internal/choices"
	"github.com/culvert-go/culvert/watchcodec"
)

// shown is the label that decides whether clients see an object.
const shown = "shown"

const carpsPath = "/apis/testapigroup.apimachinery.k8s.io/v1/namespaces/ns/carps"

// streamHistory is what a server sends through the filter, and what a client should receive of it.
type streamHistory struct {
	c      *choices.Choices
	format watchcodec.Format
	exact  bool                    // the server's encoding is, to the byte, that of an encoder
	loose  map[string]bool         // objects that an edit has made inexact, by the same keys as edited
	edited map[string]*carpv1.Carp // by the name and the version of the server's object
	err    error
}

func newStreamHistory(c *choices.Choices, formats ...watchcodec.Format) *streamHistory {
	return &streamHistory{c: c, format: choices.Pick(c, formats...), exact: true, edited: map[string]*carpv1.Carp{}, loose: map[string]bool{}}
}

// object returns an object with a name, visible or hidden.
func (h *streamHistory) object(name string, version int, seen bool) *carpv1.Carp {
	o := newCarp(h.c)
	o.Name, o.Namespace, o.ResourceVersion = name, "ns", fmt.Sprint(version)
	if o.Labels == nil {
		o.Labels = map[string]string{}
	}
	o.Labels[shown] = fmt.Sprint(seen)
	return o
}

// rewrite is the Rewriter: it edits visible objects at random, and notes the result of the same
// change by an encoder.
func (h *streamHistory) rewrite(o *watchcodec.Object) (visible bool, err error) {
	if label, _ := o.Label(shown); string(label) != "true" {
		return false, nil
	}
	key := string(o.Name()) + "/" + string(o.ResourceVersion())
	came, err := decodeCarp(h.format, o.Value().Raw())
	if err != nil {
		return false, err
	}
	if string(o.Kind()) != carpKind || string(o.APIVersion()) != carpVersion {
		h.err = fmt.Errorf("a %s of %s", o.Kind(), o.APIVersion())
	}
	came.TypeMeta = metav1.TypeMeta{Kind: carpKind, APIVersion: carpVersion}
	edits := editHistory{c: h.c, o: o, format: h.format, want: came, exact: h.exact}
	var batch []watchcodec.Edit
	for range h.c.Int(4) {
		batch = append(batch, edits.edit())
	}
	h.edited[key], h.loose[key] = came, !edits.exact
	return true, o.Edit(batch...)
}

// became returns the object that o should have become.
func (h *streamHistory) became(o *carpv1.Carp) *carpv1.Carp {
	if want := h.edited[o.Name+"/"+o.ResourceVersion]; want != nil {
		return want
	}
	if h.err == nil {
		h.err = fmt.Errorf("%s at %s was not passed to the Rewriter", o.Name, o.ResourceVersion)
	}
	return o
}

// serve sends a body through the filter, in pieces. whole is false if the response was cut off.
func (h *streamHistory) serve(target, accept string, body []byte) (w *httptest.ResponseRecorder, whole bool) {
	f := must(watchcodec.NewFilter(watchcodec.FilterOptions{Tables: true, Rewriter: func(*http.Request, watchcodec.Request) watchcodec.Rewriter { return h.rewrite }}))
	most := choices.Pick(h.c, 1<<20, 1, 7, 64, 1000)
	handler := f(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		contentType := "application/json"
		if h.format == watchcodec.Protobuf {
			contentType = "application/vnd.kubernetes.protobuf"
		}
		w.Header().Set("Content-Type", contentType)
		for len(body) > 0 {
			n := min(len(body), most)
			if n > 1 && most < 1<<20 {
				n = 1 + h.c.Int(n)
			}
			if _, err := w.Write(body[:n]); err != nil {
				return
			}
			body = body[n:]
		}
	}))
	r := httptest.NewRequest("GET", target, nil)
	r.Header.Set("Accept", accept)
	w = httptest.NewRecorder()
	defer func() {
		if v := recover(); v != nil {
			if v != http.ErrAbortHandler {
				panic(v)
			}
			whole = false
		}
	}()
	handler.ServeHTTP(w, r)
	return w, true
}

func (h *streamHistory) accept() string {
	if h.format == watchcodec.Protobuf {
		return "application/vnd.kubernetes.protobuf"
	}
	return "application/json"
}

// cut cuts a body off in some cases, and reports whether content is missing then: the newline
// after JSON is none, nor are the two empty fields after an object in protobuf.
func (h *streamHistory) cut(body []byte) (sent []byte, cut bool) {
	if !h.c.Bool(6) {
		return body, false
	}
	sent = body[:h.c.Int(len(body))]
	missing := len(body) - len(sent)
	cut = h.format == watchcodec.JSON && missing > 1 || h.format == watchcodec.Protobuf && missing != 2 && missing != 4
	h.exact = false
	return sent, cut
}

// TestListHistories: for random lists, received in pieces of any size, the filter sends the visible
// items as Kubernetes' codecs would encode them, and a list that is cut off never looks whole.
func TestListHistories(t *testing.T) {
	histories.Run(t, func(_ *testing.T, c *choices.Choices) error {
		h := newStreamHistory(c, watchcodec.JSON, watchcodec.Protobuf)
		list := &carpv1.CarpList{TypeMeta: metav1.TypeMeta{Kind: "CarpList", APIVersion: carpVersion}, Items: []carpv1.Carp{}}
		list.ResourceVersion, list.Continue, list.RemainingItemCount = "9", choices.Pick(c, "", "more"), some(c, int64(5))
		for i := range c.Int(6) {
			list.Items = append(list.Items, *h.object(fmt.Sprint("n", i), i+1, c.Bool(2)))
		}
		body := encodeAs(h.format, list)
		if h.format == watchcodec.JSON && c.Bool(4) {
			var indented bytes.Buffer
			if err := json.Indent(&indented, body, "", "  "); err != nil {
				return err
			}
			body, h.exact = indented.Bytes(), false
		}
		sent, cut := h.cut(body)
		w, whole := h.serve(carpsPath, h.accept(), sent)
		if cut {
			if whole && w.Code == http.StatusOK {
				return fmt.Errorf("a list that was cut off at %d of %d bytes looks whole: %s", len(sent), len(body), w.Body)
			}
			return nil
		}
		want := list.DeepCopy()
		want.RemainingItemCount, want.Items = nil, []carpv1.Carp{}
		for _, item := range list.Items {
			if item.Labels[shown] == "true" {
				want.Items = append(want.Items, *h.became(&item))
			}
		}
		if !whole || w.Code != http.StatusOK || h.err != nil {
			return fmt.Errorf("%q: %d %s: %w", sent, w.Code, w.Body, h.err)
		}
		got := new(carpv1.CarpList)
		return h.same(w.Body.Bytes(), h.exact && !slices.Contains(slices.Collect(maps.Values(h.loose)), true), want, got, func() { restoreKinds(got, want) })
	})
}

// restoreKinds sets the kinds of items, which some encodings omit.
func restoreKinds(got, want *carpv1.CarpList) {
	for i := range got.Items {
		if i < len(want.Items) {
			got.Items[i].TypeMeta = want.Items[i].TypeMeta
		}
	}
}

// same compares an encoding with an object: to the byte if exact is true, else after decoding.
func (h *streamHistory) same(raw []byte, exact bool, want, got runtime.Object, restore func()) error {
	encoded := encodeAs(h.format, want)
	if exact && !bytes.Equal(raw, encoded) {
		return fmt.Errorf("got\n%q\nwant\n%q", raw, encoded)
	}
	codec := runtime.Serializer(kubernetesJSON)
	if h.format == watchcodec.Protobuf {
		codec = kubernetesProtobuf
	}
	if _, _, err := codec.Decode(raw, nil, got); err != nil {
		return fmt.Errorf("%q: %w", raw, err)
	}
	restore()
	if again := encodeAs(h.format, got); !bytes.Equal(again, encoded) {
		return fmt.Errorf("%q\ndecodes to\n%q\nwant\n%q", raw, again, encoded)
	}
	return nil
}

// TestSingleHistories: the same for one object, which is not found if it is hidden.
func TestSingleHistories(t *testing.T) {
	histories.Run(t, func(_ *testing.T, c *choices.Choices) error {
		h := newStreamHistory(c, watchcodec.JSON, watchcodec.Protobuf)
		o := h.object("n1", 1, c.Bool(2))
		body := encodeAs(h.format, o)
		sent, cut := h.cut(body)
		w, whole := h.serve(carpsPath+"/n1", h.accept(), sent)
		switch {
		case !whole:
			return fmt.Errorf("%q was cut off", sent)
		case cut && len(sent) == 0 && w.Body.Len() == 0:
			return nil // no object at all
		case cut:
			if w.Code != http.StatusBadGateway {
				return fmt.Errorf("%q: %d %s", sent, w.Code, w.Body)
			}
			return nil
		case o.Labels[shown] != "true":
			if w.Code != http.StatusNotFound {
				return fmt.Errorf("%q: %d %s", sent, w.Code, w.Body)
			}
			return nil
		}
		return h.same(w.Body.Bytes(), h.exact && !h.loose["n1/1"], h.became(o), new(carpv1.Carp), func() {})
	})
}
