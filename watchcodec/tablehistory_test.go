package watchcodec_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	carpv1 "k8s.io/apimachinery/pkg/apis/testapigroup/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/culvert-go/culvert/internal/choices"
	"github.com/culvert-go/culvert/watchcodec"
)

const acceptTable = "application/json;as=Table;v=v1;g=meta.k8s.io"

var tableColumns = []metav1.TableColumnDefinition{{Name: "Name", Type: "string", Format: "name", Description: `"rows": [`}}

// tableOfCarps returns a Table with cells that could mislead a scan for members.
func tableOfCarps(c *choices.Choices, columns []metav1.TableColumnDefinition, carps ...*carpv1.Carp) *metav1.Table {
	t := &metav1.Table{TypeMeta: metav1.TypeMeta{Kind: "Table", APIVersion: "meta.k8s.io/v1"}, ColumnDefinitions: columns, Rows: []metav1.TableRow{}}
	t.ResourceVersion = "7"
	for _, o := range carps {
		row := metav1.TableRow{Cells: []any{o.Name, choices.Pick[any](c, "x", nil, int64(3), `"object":{}`, []any{map[string]any{"object": "none"}})}}
		if c.Bool(4) {
			row.Conditions = []metav1.TableRowCondition{{Type: metav1.RowCompleted, Status: "True", Message: text(c)}}
		}
		row.Object.Raw = encodeCarp(watchcodec.JSON, o)
		t.Rows = append(t.Rows, row)
	}
	return t
}

// readTable decodes the client's response.
func readTable(raw []byte) (*metav1.Table, error) {
	t := new(metav1.Table)
	if err := json.Unmarshal(raw, t); err != nil {
		return nil, fmt.Errorf("%q: %w", raw, err)
	}
	return t, nil
}

// sameRow compares a row with that of the server, whose object was rewritten.
func (h *streamHistory) sameRow(got, came metav1.TableRow, want *carpv1.Carp, exact, bare bool) error {
	if fmt.Sprint(got.Cells, got.Conditions) != fmt.Sprint(came.Cells, came.Conditions) {
		return fmt.Errorf("the row %+v, want %+v", got, came)
	}
	if bare {
		if object := string(got.Object.Raw); object != "null" && object != "" {
			return fmt.Errorf("the object %s, which the client did not request", object)
		}
		return nil
	}
	return h.same(append(bytes.Clone(got.Object.Raw), '\n'), exact, want, new(carpv1.Carp), func() {})
}

// TestTableHistories: a client receives the rows of a Table whose objects are visible, edited as
// they would be in a list. A Table that is cut off does not look whole.
func TestTableHistories(t *testing.T) {
	histories.Run(t, func(_ *testing.T, c *choices.Choices) error {
		h := newStreamHistory(c, watchcodec.JSON)
		var all []*carpv1.Carp
		for i := range c.Int(5) {
			all = append(all, h.object(fmt.Sprint("n", i), i+1, c.Bool(2)))
		}
		target, bare := carpsPath, c.Bool(3)
		if c.Bool(4) {
			target += "/n0" // one object is a Table of one row
			all = all[:min(len(all), 1)]
		}
		if bare {
			target += "?includeObject=None"
		}
		came := tableOfCarps(c, tableColumns, all...)
		body := encodeAs(watchcodec.JSON, came)
		sent, cut := h.cut(body)
		w, whole := h.serve(target, acceptTable, sent)
		if cut {
			if whole && w.Code == http.StatusOK && w.Body.Len() > 0 {
				return fmt.Errorf("a Table that was cut off at %d of %d bytes looks whole: %s", len(sent), len(body), w.Body)
			}
			return nil
		}
		single := len(target) > len(carpsPath) && target[len(carpsPath)] == '/'
		if single && len(all) == 1 && all[0].Labels[shown] != "true" {
			if w.Code != http.StatusNotFound {
				return fmt.Errorf("%q: %d %s", sent, w.Code, w.Body)
			}
			return nil
		}
		got, err := readTable(w.Body.Bytes())
		if err != nil || !whole || w.Code != http.StatusOK {
			return fmt.Errorf("%q: %d %s: %w", sent, w.Code, w.Body, err)
		}
		if err := h.rows(got, came, all, bare); err != nil {
			return fmt.Errorf("%q became %s: %w", sent, w.Body, err)
		}
		return h.err
	})
}

// rows compares a Table with that of the server.
func (h *streamHistory) rows(got, came *metav1.Table, all []*carpv1.Carp, bare bool) error {
	if fmt.Sprint(got.ColumnDefinitions) != fmt.Sprint(came.ColumnDefinitions) || got.ResourceVersion != came.ResourceVersion || got.Rows == nil {
		return fmt.Errorf("the Table %+v, want %+v", got, came)
	}
	at := 0
	for i, o := range all {
		if o.Labels[shown] != "true" {
			continue
		}
		if at == len(got.Rows) {
			return fmt.Errorf("no row of %s", o.Name)
		}
		if err := h.sameRow(got.Rows[at], came.Rows[i], h.became(o), !h.loose[o.Name+"/"+o.ResourceVersion], bare); err != nil {
			return fmt.Errorf("row %d: %w", at, err)
		}
		at++
	}
	if at != len(got.Rows) {
		return fmt.Errorf("%d rows, want %d", len(got.Rows), at)
	}
	return nil
}

// TestTableWatchHistories: a watch of Tables sends the events of visible objects, and the first
// event that the client receives has the columns, whichever event of the server had them.
func TestTableWatchHistories(t *testing.T) {
	histories.Run(t, func(_ *testing.T, c *choices.Choices) error {
		h := &watchHistory{streamHistory: newStreamHistory(c, watchcodec.JSON), exists: map[string]*carpv1.Carp{}, has: map[string]bool{}}
		var body []byte
		var came []*metav1.Table
		var kinds []string
		var objects []*carpv1.Carp
		columns := tableColumns
		for version := range c.Int(10) {
			kind, o := h.next(version + 1)
			if kind == "BOOKMARK" {
				continue // it has a row without meaning
			}
			table := tableOfCarps(c, columns, o)
			columns = nil
			body = append(body, h.frame(kind, encodeAs(watchcodec.JSON, table))...)
			kinds, objects, came = append(kinds, kind), append(objects, o), append(came, table)
		}
		bare := c.Bool(3)
		target := carpsPath + "?watch=1"
		if bare {
			target += "&includeObject=None"
		}
		w, whole := h.serve(target, acceptTable, body)
		if !whole || w.Code != 200 {
			return fmt.Errorf("%q after %d", w.Body, w.Code)
		}
		watch, columns := w.Body.Bytes(), tableColumns
		for i, kind := range kinds {
			want := h.wants(kind, objects[i])
			if want == nil {
				continue
			}
			e, _, rest, err := h.cutFrame(watch)
			if err != nil || e.Type != want.kind {
				return fmt.Errorf("event %d of %v is %s of %q, want %s: %w", i, kinds, e.Type, watch, want.kind, err)
			}
			if err := h.tableEvent(e.Object, came[i], want, columns, bare); err != nil {
				return fmt.Errorf("event %d of %v, %s: %w", i, kinds, e.Object.Raw, err)
			}
			watch, columns = rest, nil
		}
		if len(watch) > 0 {
			return fmt.Errorf("%q after the last event", watch)
		}
		return h.err
	})
}

// tableEvent compares the Table of an event with the server's.
func (h *watchHistory) tableEvent(e runtime.RawExtension, came *metav1.Table, want *seenEvent, columns []metav1.TableColumnDefinition, bare bool) error {
	got, err := readTable(e.Raw)
	if err != nil || len(got.Rows) != 1 {
		return fmt.Errorf("no Table of one row: %w", err)
	}
	if fmt.Sprint(got.ColumnDefinitions) != fmt.Sprint(columns) {
		return fmt.Errorf("the columns %v, want %v", got.ColumnDefinitions, columns)
	}
	row := came.Rows[0]
	if want.hidden { // its name only
		row = metav1.TableRow{Cells: []any{want.object.Name}}
	}
	return h.sameRow(got.Rows[0], row, want.object, want.exact, bare)
}
