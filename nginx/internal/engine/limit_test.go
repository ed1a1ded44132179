package engine_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// timedStatus sends a request to the first listener's handler and returns the status and the time
// that it took.
func (s *site) timedStatus(target string) (status int, took time.Duration) {
	start := time.Now()
	w := httptest.NewRecorder()
	s.engine.Listeners()[0].Handler.ServeHTTP(w, httptest.NewRequest("GET", target, nil))
	return w.Code, time.Since(start)
}

// A bucket leaks at its rate, delay decides whether its burst waits, and each key has its own
// bucket.
func TestLimitReq(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := load(t, map[string]string{"nginx.conf": `events {}
http { access_log off; limit_req_zone $arg_key zone=one:1m rate=2r/s; limit_req_zone $arg_other zone=small:32k rate=1r/m;
server { listen 80;
  location /delayed/ { limit_req zone=one burst=3; try_files /a =204; }
  location /partly/ { limit_req zone=one burst=3 delay=1; try_files /a =204; }
  location /small/ { limit_req zone=small; try_files /a =204; } } }`})
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []time.Duration{0, 500 * time.Millisecond, 500 * time.Millisecond} { // one after the other
			if status, took := s.timedStatus("/delayed/?key=a"); status != 204 || took != want {
				t.Errorf("request %d: %d after %v, want %v", i, status, took, want)
			}
		}
		time.Sleep(time.Minute)
		var all sync.WaitGroup
		var mu sync.Mutex
		statuses, longest := map[int]int{}, time.Duration(0)
		for range 6 {
			all.Go(func() {
				status, took := s.timedStatus("/partly/?key=b")
				mu.Lock()
				defer mu.Unlock()
				statuses[status]++
				longest = max(longest, took)
			})
		}
		all.Wait()
		if statuses[204] != 4 || statuses[503] != 2 || longest != time.Second { // the burst's first does not wait
			t.Errorf("six at once: %v, the longest after %v", statuses, longest)
		}
		if status, _ := s.timedStatus("/partly/?key=c"); status != 204 {
			t.Errorf("another key: %d", status)
		}
		if status, _ := s.timedStatus("/small/?other=first"); status != 204 {
			t.Errorf("first: %d", status)
		}
		if status, _ := s.timedStatus("/small/?other=first"); status != 503 {
			t.Errorf("first again: %d", status)
		}
		for i := range 256 { // as many as the zone holds
			s.timedStatus("/small/?other=" + strings.Repeat("x", i+1))
		}
		if status, _ := s.timedStatus("/small/?other=first"); status != 204 {
			t.Errorf("the longest unused key is still known: %d", status)
		}
	})
}

// No more concurrent requests are let in than there is room for, and one that a zone refuses is
// not counted by the others.
func TestLimitReqAtOnce(t *testing.T) {
	s, err := load(t, map[string]string{"nginx.conf": `events {}
http { access_log off; limit_req_zone $arg_key zone=one:1m rate=1r/m; limit_req_zone $arg_all zone=all:1m rate=1r/m;
server { listen 80;
  location /one/ { limit_req zone=one burst=9 nodelay; try_files /a =204; }
  location /both/ { limit_req zone=one; limit_req zone=all; try_files /a =204; } } }`})
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	var in atomic.Int32
	for range 200 {
		all.Go(func() {
			if status, _ := s.timedStatus("/one/?key=a"); status == 204 {
				in.Add(1)
			}
		})
	}
	all.Wait()
	if in.Load() != 10 {
		t.Errorf("%d were let in, want 10", in.Load())
	}
	for _, test := range []struct {
		query string
		want  int
	}{{"key=b&all=x", 204}, {"key=c&all=x", 503}, {"key=c&all=x", 503}, {"key=c&all=y", 204}, {"key=c&all=z", 503}} {
		if status, _ := s.timedStatus("/both/?" + test.query); status != test.want {
			t.Errorf("%s: %d, want %d", test.query, status, test.want)
		}
	}
}

// limit_conn counts running requests, and stops counting a request when it has ended.
func TestLimitConn(t *testing.T) {
	arrived, release := make(chan struct{}, 2), make(chan struct{})
	backend := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		arrived <- struct{}{}
		<-release
	}))
	defer backend.Close()
	s, err := load(t, map[string]string{"nginx.conf": `events {}
http { access_log off; limit_conn_zone $arg_key zone=c:1m;
server { listen 80; location / { limit_conn c 2; limit_conn_status 429; proxy_pass ` + backend.URL + `; } } }`})
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	for range 2 {
		running.Go(func() {
			if status, _ := s.timedStatus("/?key=a"); status != 200 {
				t.Errorf("one of two: %d", status)
			}
		})
		<-arrived
	}
	if status, _ := s.timedStatus("/?key=a"); status != 429 {
		t.Errorf("the third: %d", status)
	}
	close(release)
	running.Wait()
	if status, _ := s.timedStatus("/?key=a"); status != 200 {
		t.Errorf("after they have ended: %d", status)
	}
}

// A zone of limit_conn that is full refuses requests: it can't drop the entry of a running one.
func TestLimitConnWithoutRoom(t *testing.T) {
	const room = 256
	arrived, release := make(chan struct{}, room), make(chan struct{})
	backend := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		arrived <- struct{}{}
		<-release
	}))
	defer backend.Close()
	s, err := load(t, map[string]string{"nginx.conf": `events {}
http { access_log off; limit_conn_zone $arg_key zone=c:32k;
server { listen 80; location / { limit_conn c 1; proxy_pass ` + backend.URL + `; } } }`})
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	for i := range room {
		running.Go(func() {
			if status, _ := s.timedStatus("/?key=" + strconv.Itoa(i)); status != 200 {
				t.Errorf("%d: %d", i, status)
			}
		})
	}
	for range room {
		<-arrived
	}
	for _, key := range []string{"another", "0"} {
		if status, _ := s.timedStatus("/?key=" + key); status != 503 {
			t.Errorf("%s beside %d others: %d", key, room, status)
		}
	}
	if want := `no memory in limit_conn_zone "c"`; strings.Count(s.errors.String(), want) != 1 {
		t.Errorf("the log: %s", s.errors.String())
	}
	close(release)
	running.Wait()
	if status, _ := s.timedStatus("/?key=another"); status != 200 {
		t.Errorf("after they have ended: %d", status)
	}
}

// The header is sent at once, with the bytes of the first second.
func TestLimitRateBegins(t *testing.T) {
	s := serve(t, with(server("listen 80; access_log off; limit_rate 10k; root html;"), "html/a", strings.Repeat("x", 4<<20)))
	got, err := http.Get("http://" + s.first + "/a")
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	if _, err := io.ReadFull(got.Body, make([]byte, 10<<10)); err != nil {
		t.Error(err)
	}
}

// limit_rate sends its number of bytes per second, after the first ones, those of the first second at once.
func TestLimitRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := load(t, with(server("listen 80; access_log off; limit_rate 10k; limit_rate_after 5k; root html;"), "html/a", strings.Repeat("x", 35<<10)))
		if err != nil {
			t.Fatal(err)
		}
		status, took := s.timedStatus("/a")
		if status != 200 || took < 2*time.Second || took > 2*time.Second+100*time.Millisecond {
			t.Errorf("35 KiB with 15 at once and 10 a second: %d after %v", status, took)
		}
	})
}

func TestStubStatus(t *testing.T) {
	s := serve(t, server("listen 80; location /status { stub_status; }"))
	got := s.request("GET", "/status")
	if want := "Active connections: 1 \nserver accepts handled requests\n 1 1 1 \nReading: 0 Writing: 1 Waiting: 0 \n"; got.body != want {
		t.Errorf("%q, want %q", got.body, want)
	}
}

// An upstream's server with "resolve" is looked up while the configuration runs.
func TestResolve(t *testing.T) {
	at, seen := nameServer(t)
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte(r.Host)) }))
	defer backend.Close()
	_, port, _ := strings.Cut(backend.Listener.Addr().String(), ":")
	s := serve(t, map[string]string{"nginx.conf": `events {}
http { access_log off; resolver ` + at + ` ipv6=off;
upstream u { zone u 1m; server app.test:` + port + ` resolve; server 127.0.0.1:1 backup; }
upstream none { server nowhere.invalid:1 resolve; }
server { listen 80; location / { proxy_pass http://u; } location /none/ { proxy_pass http://none; } } }`})
	if got := s.request("GET", "/"); got.StatusCode != 200 || got.body != "u" {
		t.Errorf("%d %q", got.StatusCode, got.body)
	}
	if seen.Load() == 0 {
		t.Error("the name server received no query")
	}
}
