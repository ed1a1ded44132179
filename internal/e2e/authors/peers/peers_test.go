package peers

import (
	"io"
	"net/http"
	"os"
	"testing"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/redis/go-redis/v9"
)

func TestMain(m *testing.M) { os.Exit(leaktest.Run(m)) }

func TestPeersServe(t *testing.T) {
	addr := Nginx(t, "", "location / { return 200 'hello'; }")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get("http://" + addr)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, _ := io.ReadAll(resp.Body); string(body) != "hello" {
		t.Errorf("nginx: %q", body)
	}

	url, stop := Redis(t)
	options, err := redis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	options.MaxRetries = -1
	db := redis.NewClient(options)
	defer db.Close()
	if err := db.Ping(t.Context()).Err(); err != nil {
		t.Error(err)
	}
	stop()
	if err := db.Ping(t.Context()).Err(); err == nil {
		t.Error("redis-server responds after stop")
	}
}
