package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/url"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
)

// redirecting sends a request on to the Location in its query, with the status of its path, and describes any other
// request.
func redirecting(w http.ResponseWriter, r *http.Request) {
	var status int
	if _, err := fmt.Sscanf(r.URL.Path, "/base/%d", &status); err == nil {
		w.Header().Set("Location", strings.ReplaceAll(r.FormValue("to"), "HOST", r.Host))
		w.Header().Add("Set-Cookie", fmt.Sprintf("by=%d", status))
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "moved")
		return
	}
	body, _ := io.ReadAll(r.Body)
	w.Header().Add("Set-Cookie", "last=1")
	fmt.Fprintf(w, "%s %s %q %v %s %s %s %s", r.Method, r.URL, body, r.Host == "browser.test", r.Header.Get("Content-Type"), r.Header.Get("Authorization"), r.Header.Get("Cookie"), r.Header.Get("X-Key"))
}

func TestFollowRedirects(t *testing.T) {
	other := wiretest.Serve(t, http.HandlerFunc(redirecting))
	third := wiretest.Serve(t, http.HandlerFunc(redirecting))
	address, _ := start(t, `
proxy:
  - context: /own
    target: http://TARGET/base
    pathRewrite: {"^/own": ""}
    followRedirects: true
    auth: me:x
    headers: {X-Key: k}
  - context: /list
    target: http://TARGET/base
    pathRewrite: {"^/list": ""}
    changeOrigin: true
    followRedirects: ["http://`+other+`/"]
    auth: me:x
    headers: {X-Key: k}
`, http.HandlerFunc(redirecting))
	const own, changed = `true  Basic bWU6eA== c=1 k`, `false  Basic bWU6eA== c=1 k`
	for _, test := range []struct {
		request, to string
		status      int
		want        string // the body, or the Location of a redirect that is not followed
	}{
		{"GET /own/302", "/end?q=%zz", 200, `GET /end?q=%zz "" ` + own},
		{"GET /own/308", "end#part", 200, `GET /base/end "" ` + own},
		{"GET /own/301", "http://HOST/end", 200, `GET /end "" ` + own},
		{"POST /own/303", "/end", 200, `GET /end "" ` + own},
		{"POST /own/302", "/base/307?to=/end", 200, `GET /end "" ` + own},
		{"PUT /own/303", "/end", 200, `GET /end "" ` + own},
		{"HEAD /own/303", "/end", 200, ""},
		{"POST /own/307", "/end", 307, "/end"},
		{"PUT /own/302", "/end", 302, "/end"},
		{"GET /own/304", "/end", 304, "/end"},
		{"GET /own/302", "", 302, ""},
		{"GET /own/302", "http://" + other + "/end", 302, "http://" + other + "/end"},
		{"GET /own/302", "https://HOST/end", 302, "https://browser.test/end"},
		{"GET /list/302", "http://" + other + "/end", 200, `GET /end "" false    `},
		{"GET /list/302", "http://" + third + "/end", 302, "http://" + third + "/end"},
		{"GET /list/302", "http://" + other + "/base/302?to=" + url.QueryEscape("http://"+third+"/end"), 302, "http://" + third + "/end"},
		{"GET /list/302", "http://HOST/end", 200, `GET /end "" ` + changed},
	} {
		method, path, _ := strings.Cut(test.request, " ")
		var body io.Reader
		if method != "GET" && method != "HEAD" {
			body = strings.NewReader("a=1")
		}
		r, err := http.NewRequestWithContext(t.Context(), method, "http://"+address+path+"?to="+url.QueryEscape(test.to), body)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = "browser.test"
		r.Header.Set("Cookie", "c=1")
		if body != nil {
			r.Header.Set("Content-Type", "application/octet-stream")
		}
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode/100 == 3 {
			got = []byte(resp.Header.Get("Location"))
		}
		if err != nil || resp.StatusCode != test.status || string(got) != test.want {
			t.Errorf("%s to %q: %d %q %v, want %d %q", test.request, test.to, resp.StatusCode, got, err, test.status, test.want)
		}
		if cookies := fmt.Sprint(resp.Header["Set-Cookie"]); test.status == 200 && (!strings.HasPrefix(cookies, "[by=3") || !strings.HasSuffix(cookies, " last=1]")) {
			t.Errorf("%s to %q: cookies %s", test.request, test.to, cookies)
		}
	}
}

// A target that redirects for ever, and one that is gone behind its first response.
func TestRedirectsWithoutEnd(t *testing.T) {
	requests := 0
	address, log := start(t, `
proxy:
  - {context: /, target: "http://TARGET", followRedirects: ["http://127.0.0.1:1"]}
`, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests++ // one after the other
		if r.URL.Path == "/gone" {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusSeeOther)
			return
		}
		http.Redirect(w, r, "/again", http.StatusFound)
	}))
	if resp, body := get(t, "http://"+address+"/"); resp.StatusCode != 502 || requests != maxRedirects+1 || !strings.Contains(body, "more than 21 redirects") {
		t.Errorf("%s %q after %d requests", resp.Status, body, requests)
	}
	requests = 0
	if resp, body := get(t, "http://"+address+"/gone"); resp.StatusCode != 502 || requests != 1 || !strings.Contains(body, "the redirect to http://127.0.0.1:1/:") {
		t.Errorf("%s %q after %d requests\n%s", resp.Status, body, requests, log)
	}
}

// What the proxy observes of the connection to the target, to decide about another attempt, is not of those that
// redirects lead to.
func TestRedirectsAreNotTraced(t *testing.T) {
	leaktest.Check(t)
	target, err := url.Parse("http://" + wiretest.Serve(t, respond("end")))
	if err != nil {
		t.Fatal(err)
	}
	f := newFollower(&compiled{rule: &rule{}}, target, roundTrip(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusFound, Header: http.Header{"Location": {"/end"}}, Body: http.NoBody}, nil
	}), nil)
	defer f.close()
	r := httptest.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { t.Error("the connection of a redirect is traced") },
	}), "GET", target.String(), nil)
	resp, err := f.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); string(body) != "end" || err != nil {
		t.Errorf("%q %v", body, err)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
