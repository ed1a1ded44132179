package result_test

import (
	"context"
	"testing"

	"github.com/culvert-go/culvert/internal/result"
)

// key is of a value between the two.
type key struct{}

// Nested filters share one record, so that the proxy fills what each of them reads.
func TestWith(t *testing.T) {
	if result.From(t.Context()) != nil {
		t.Error("a record that nobody asked for")
	}
	outer, record := result.With(t.Context())
	inner, same := result.With(context.WithValue(outer, key{}, 1))
	if same != record || result.From(inner) != record || result.From(outer) != record {
		t.Error("a second record")
	}
}
