package demo

import (
	"encoding/json"
	"net/http"
)

// app is an app server that says which one it is.
func app(name string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer(w, map[string]string{"upstream": name, "address": r.Context().Value(http.LocalAddrContextKey).(interface{ String() string }).String()})
	})
}

// answer sends v as JSON.
func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // a client that has gone needs no answer
}
