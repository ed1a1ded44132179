package demo

import (
	"encoding/json"
	"net/http"
)

// app is an app server that responds with its name and address.
func app(name string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sendJSON(w, map[string]string{"upstream": name, "address": r.Context().Value(http.LocalAddrContextKey).(interface{ String() string }).String()})
	})
}

// sendJSON sends v as JSON.
func sendJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // a disconnected client needs no response
}
