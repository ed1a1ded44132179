package filters_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
)

// authorize returns a handler that gives requests a user and a password.
func authorize(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.SetBasicAuth("a", "b")
		h.ServeHTTP(w, r)
	})
}

// basic returns the value of Authorization for a user and a password.
func basic(credentials string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(credentials))
}

// Only a user with the password passes, by Users and by Check alike.
func TestBasicAuth(t *testing.T) {
	users := map[string]string{"alice": "se:cret", "bøb": "пароль", "empty": ""}
	check := func(r *http.Request, user, password string) (bool, error) {
		if r.URL.Path != "/" {
			t.Errorf("Check was called with %v", r.URL)
		}
		want, ok := users[user]
		return ok && password == want, nil
	}
	for way, o := range map[string]filters.BasicAuthOptions{"Users": {Realm: "a", Users: users}, "Check": {Realm: "a", Check: check}} {
		f := good(t)(filters.BasicAuth(o))
		for credentials, want := range map[string]int{
			basic("alice:se:cret"):                                200,
			strings.Replace(basic("alice:se:cret"), "B", "b", 1):  200, // RFC 9110 section 11.1: without regard to case
			strings.Replace(basic("alice:se:cret"), " ", "  ", 1): 200, // section 11.4: any number of blanks
			basic("bøb:пароль"):                                   200,
			basic("empty:"):                                       200,
			basic("alice:se:cret "):                               401,
			basic("alice:se:cre"):                                 401,
			basic("alice:"):                                       401,
			basic("alice"):                                        401,
			basic("Alice:se:cret"):                                401,
			basic("bob:se:cret"):                                  401,
			basic(":"):                                            401,
			basic("alice:se:cret\x00"):                            401,
			basic("b\xf8b:\xef\xe0"):                              401,
			basic("alice:se:cret") + "=":                          401,
			"Basic alice:se:cret":                                 401,
			"Basic":                                               401,
			"Bearer " + basic("alice:se:cret")[6:]:                401,
			"":                                                    401,
		} {
			called := false
			resp, _ := through(f, func(http.ResponseWriter, *http.Request) { called = true }, get("Authorization", credentials))
			if resp.StatusCode != want || called != (want == 200) {
				t.Errorf("%s: status %d for %q", way, resp.StatusCode, credentials)
			}
			challenge := ""
			if want == 401 {
				challenge = `Basic realm="a", charset="UTF-8"`
			}
			if got := resp.Header.Get("WWW-Authenticate"); got != challenge {
				t.Errorf("%s: challenge %q for %q", way, got, credentials)
			}
		}
		for _, second := range []string{basic("alice:se:cret"), "Bearer a"} {
			if resp, _ := through(f, respond("ok"), get("Authorization", basic("alice:se:cret"), "Authorization", second)); resp.StatusCode != 401 {
				t.Errorf("%s: status %d for a second field %q", way, resp.StatusCode, second)
			}
		}
	}
}

// The next handler gets the password only if it is to, and outer handlers keep it.
func TestBasicAuthRemovesAuthorization(t *testing.T) {
	for _, keep := range []bool{false, true} {
		f := good(t)(filters.BasicAuth(filters.BasicAuthOptions{Realm: "a", Users: map[string]string{"a": "b"}, KeepAuthorization: keep}))
		r := get("Authorization", basic("a:b"), "X-Other", "1")
		through(f, func(_ http.ResponseWriter, r *http.Request) {
			if _, has := r.Header["Authorization"]; has != keep || r.Header.Get("X-Other") != "1" {
				t.Errorf("KeepAuthorization %v: header %v", keep, r.Header)
			}
			r.Header.Set("X-Set", "1")
		}, r)
		if r.Header.Get("Authorization") == "" {
			t.Errorf("KeepAuthorization %v: the outer header is %v", keep, r.Header)
		}
	}
}

// The user is known to the handlers inside, with and without a log, and to the logs outside.
func TestBasicAuthUser(t *testing.T) {
	auth := good(t)(filters.BasicAuth(filters.BasicAuthOptions{Realm: "a", Users: map[string]string{"al\"ice": "b"}}))
	h := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if got := filters.ResultFrom(r.Context()).User; got != `al"ice` {
			t.Errorf("user %q inside", got)
		}
	})
	through(auth, h, get("Authorization", basic(`al"ice:b`)))
	for credentials, want := range map[string][2]string{
		basic(`al"ice:b`): {` user="al\"ice"`, ` - al\x22ice [`},
		basic(`al"ice:c`): {"", ` - al\x22ice [`}, // as nginx writes it
		"":                {"", ` - - [`},
	} {
		var records, lines bytes.Buffer
		chain := filters.NewChain(filters.AccessLog(slog.New(slog.NewTextHandler(&records, nil))), filters.CombinedLog(&lines), auth)
		chain.Then(h).ServeHTTP(httptest.NewRecorder(), get("Authorization", credentials))
		if got := records.String(); strings.Contains(got, " user=") != (want[0] != "") || !strings.Contains(got, want[0]) {
			t.Errorf("%q: record %s", credentials, got)
		}
		if got := lines.String(); !strings.Contains(got, want[1]) {
			t.Errorf("%q: line %s", credentials, got)
		}
	}
}

// If Check fails, the client is refused regardless of what else Check returns, and the logs have the reason.
func TestBasicAuthCheckFails(t *testing.T) {
	f := good(t)(filters.BasicAuth(filters.BasicAuthOptions{Realm: "a", Check: func(*http.Request, string, string) (bool, error) {
		return true, errors.New("no directory")
	}}))
	ctx, result := filters.WithResult(t.Context())
	resp, body := through(f, respond("ok"), get("Authorization", basic("a:b")).WithContext(ctx))
	var failure *culvert.Error
	if resp.StatusCode != 500 || strings.Contains(body, "directory") || !errors.As(result.Err, &failure) || failure.Kind != culvert.Internal ||
		failure.Error() != "internal error: filters: BasicAuth: no directory" {
		t.Errorf("status %d, content %q, error %v", resp.StatusCode, body, result.Err)
	}
	if result.User != "" {
		t.Errorf("user %q", result.User)
	}
}

func TestBasicAuthOptions(t *testing.T) {
	users := map[string]string{"a": "b"}
	const realm = "filters: BasicAuth: BasicAuthOptions.Realm is empty or has invalid characters"
	bad(t, realm)(filters.BasicAuth(filters.BasicAuthOptions{Users: users}))
	bad(t, realm)(filters.BasicAuth(filters.BasicAuthOptions{Realm: "a\r\nb", Users: users}))
	bad(t, realm)(filters.BasicAuth(filters.BasicAuthOptions{Realm: "\xff", Users: users}))
	const both = "filters: BasicAuth: one of BasicAuthOptions.Users and Check is required, and not both"
	bad(t, both)(filters.BasicAuth(filters.BasicAuthOptions{Realm: "a"}))
	bad(t, both)(filters.BasicAuth(filters.BasicAuthOptions{Realm: "a", Users: users, Check: func(*http.Request, string, string) (bool, error) { return true, nil }}))
	for _, user := range []string{"", "a:b", "a\n"} {
		bad(t, fmt.Sprintf("filters: BasicAuth: invalid user name %q", user))(filters.BasicAuth(filters.BasicAuthOptions{Realm: "a", Users: map[string]string{user: "a"}}))
	}
	f := good(t)(filters.BasicAuth(filters.BasicAuthOptions{Realm: `say "ä\b"`, Users: users}))
	users["c"] = "d" // the filter does not change with the map
	resp, _ := through(f, respond("ok"), get("Authorization", basic("c:d")))
	if got := resp.Header.Get("WWW-Authenticate"); resp.StatusCode != 401 || got != `Basic realm="say \"ä\\b\"", charset="UTF-8"` {
		t.Errorf("status %d, challenge %s", resp.StatusCode, got)
	}
}

// The handler is called only if Authorization is the user and the password in base64, and Check never
// gets what RFC 7617 excludes.
func FuzzBasicAuth(f *testing.F) {
	for _, seed := range []string{basic("a:b"), "basic " + basic("a:b")[6:], basic("a:b\n"), "Basic YTpi\n", "Basic  YTpi", "Basic YTp=", basic("ä:ö"), "Basic"} {
		f.Add(seed)
	}
	filter := good(f)(filters.BasicAuth(filters.BasicAuthOptions{Realm: "a", Check: func(_ *http.Request, user, password string) (bool, error) {
		for _, s := range []string{user, password} {
			if !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl) {
				f.Errorf("Check was called with %q", s)
			}
		}
		if strings.Contains(user, ":") {
			f.Errorf("Check was called with the user %q", user)
		}
		return user == "a" && password == "b", nil
	}}))
	f.Fuzz(func(t *testing.T, value string) {
		if strings.ContainsAny(value, "\r\n") {
			return // no field has them, and package base64 ignores them
		}
		want := len(value) >= 10 && strings.EqualFold(value[:6], "Basic ") && strings.TrimLeft(value[6:], " ") == "YTpi"
		if status, _ := limited(filter(quiet), get("Authorization", value)); (status == 200) != want {
			t.Errorf("%q: status %d", value, status)
		}
	})
}

// Only the operators may use the administration. The target learns who they are, but not their passwords.
func ExampleBasicAuth() {
	auth, err := filters.BasicAuth(filters.BasicAuthOptions{
		Realm: "administration",
		Users: map[string]string{"gopher": "a long secret from the configuration"},
	})
	if err != nil {
		log.Fatal(err)
	}
	h := auth(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "Hello, %s. %q", filters.ResultFrom(r.Context()).User, r.Header.Get("Authorization"))
	}))
	for _, password := range []string{"guessed", "a long secret from the configuration"} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest("GET", "/admin", nil)
		r.SetBasicAuth("gopher", password)
		h.ServeHTTP(w, r)
		fmt.Println(w.Code, strings.TrimSpace(w.Body.String()))
	}
	// Output:
	// 401 Unauthorized
	// 200 Hello, gopher. ""
}
