package wiretest

import (
	"io"
	"net/http"
	"testing"
)

// Get sends a GET with the given header fields, as names and values in turn, over a connection of its own. It returns the
// response and its body, not decoded. The error of a response that is cut off follows the body, behind "BROKEN: "; without
// a whole header its StatusCode is 0.
func Get(t testing.TB, url string, fields ...string) (*http.Response, []byte) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(fields); i += 2 {
		r.Header.Set(fields[i], fields[i+1])
	}
	client := &http.Client{Transport: &http.Transport{DisableCompression: true, DisableKeepAlives: true}, Timeout: patience}
	resp, err := client.Do(r)
	if err != nil {
		return new(http.Response), []byte("BROKEN: " + err.Error())
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		body = append(body, "\nBROKEN: "+err.Error()...)
	}
	return resp, body
}
