package header_test

import (
	"net/http"
	"testing"

	"github.com/culvert-go/culvert/internal/header"
)

func TestBasicAuth(t *testing.T) {
	for line, want := range map[string]bool{
		"Basic dTpwdw==": true, "Basic  dTpwdw==": true, "bASIC    dTpwdw==": true,
		"": false, "Basic": false, "Basic ": false, "Basic  ": false, "Basic dTpw dw==": false, "Basic \tdTpwdw==": false, "Bearer  dTpwdw==": false,
	} {
		user, password, ok := header.BasicAuth(&http.Request{Header: http.Header{"Authorization": {line}}})
		if ok != want || ok && (user != "u" || password != "pw") {
			t.Errorf("%q: %q, %q, %v", line, user, password, ok)
		}
	}
	if _, _, ok := header.BasicAuth(&http.Request{}); ok {
		t.Error("a request without a header has credentials")
	}
}
