package simulate

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	carpv1 "k8s.io/apimachinery/pkg/apis/testapigroup/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// addTables chooses histories whose Kubernetes filters allow Tables (watchcodec.FilterOptions.Tables), with lists and
// watches of Tables.
func (p *Plan) addTables(c *Choices) {
	if p.kubeEnders() == 0 || !c.Bool(3) {
		return
	}
	for i := range p.Gateway.Filters {
		if f := &p.Gateway.Filters[i]; filterKinds[f.Kind].name == kubeKind.name {
			f.B = f.B%3 + 3
		}
	}
	for i := range p.Clients {
		for k := range p.Clients[i].Requests {
			e := &p.Clients[i].Requests[k]
			if e.Kube != KubeList && e.Kube != KubeWatch || e.Resumed || c.Bool(3) {
				continue
			}
			e.Wants = Pick(c, kubeTableOrJSON, kubeTable)
			for n := range e.Responses {
				e.Responses[n].beTable(e, n)
			}
		}
	}
}

// beTable makes a response of Kubernetes a Table, or a watch of Tables. Tables are in JSON.
func (r *ResponsePlan) beTable(e *ExchangePlan, attempt int) {
	k := r.Kube
	if k == nil || k.Resumed || k.Verb != e.Kube {
		return
	}
	cut := r.Body.Length < int64(len(k.content(e.stream(attempt)).bytes()))
	k.Proto, k.Table, r.Media = false, true, MediaKubeJSON
	size := int64(len(k.content(e.stream(attempt)).bytes()))
	if r.Body.Length = min(r.Body.Length, size); !cut {
		r.Body.Length = size
	}
	r.Body.CutAt = min(r.Body.CutAt, max(0, r.Body.Length-1))
	r.Body.Cut = r.Body.Cut && r.Body.Length > 0
}

// kubeTable is the Accept field of a client that accepts only Tables.
const kubeTable = "application/json;as=Table;v=v1;g=meta.k8s.io"

// tables reports whether the filter allows Tables.
func (p FilterPlan) tables() bool { return p.B >= 3 }

// accepts returns the Accept field that the filter sends to the target, "" for a refusal.
func (p FilterPlan) accepts(wants string) string {
	if p.tables() && (wants == kubeTable || wants == kubeTableOrJSON) {
		return wants
	}
	return kubeAccepts[wants]
}

// columnsOf are the columns of a Table.
var columnsOf = []metav1.TableColumnDefinition{{Name: "Name", Type: "string", Format: "name", Description: `"rows": [`}, {Name: "Node", Type: "string"}}

// encodeTable encodes a Table of objects, as an API server does. Only the first event of a watch has the columns.
func (k *kubeContent) encodeTable(events []kubeEvent, columns bool) []byte {
	t := &metav1.Table{TypeMeta: metav1.TypeMeta{Kind: "Table", APIVersion: "meta.k8s.io/v1"}, Rows: []metav1.TableRow{}}
	if t.ResourceVersion = "9"; columns {
		t.ColumnDefinitions = columnsOf
	}
	for i := range events {
		e := &events[i]
		o := k.carp(e)
		plain := kubeContent{verb: k.verb}
		row := metav1.TableRow{Cells: []any{o.Name, "somewhere"}, Object: runtime.RawExtension{Raw: plain.encode(o)}}
		if e.bare {
			row.Cells = row.Cells[:1]
		}
		t.Rows = append(t.Rows, row)
	}
	text, err := json.Marshal(t)
	if err != nil {
		panic(err)
	}
	return append(text, '\n')
}

// tableColumns holds the columns of a watch of Tables until the first event that the client sees.
type tableColumns struct{ due bool }

// take takes the columns of an event of the target's.
func (c *tableColumns) take(e *kubeEvent) {
	c.due = c.due || e.columns
	e.columns = false
}

// give gives the columns to an event that the client sees.
func (c *tableColumns) give(e *kubeEvent) {
	e.columns, c.due = c.due, false
}

// openTable returns the object in a Table's only row.
func openTable(raw []byte) *carpv1.Carp {
	t, o := new(metav1.Table), new(carpv1.Carp)
	if json.Unmarshal(raw, t) == nil && len(t.Rows) == 1 && len(t.Rows[0].Cells) == 1 {
		_ = json.Unmarshal(t.Rows[0].Object.Raw, o)
	}
	return o
}
