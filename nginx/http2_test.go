package nginx_test

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/culvert-go/culvert/nginx"
)

// A client of HTTP/2 learns how many streams http2_max_concurrent_streams allows.
func TestMaxConcurrentStreams(t *testing.T) {
	file := filepath.Join(t.TempDir(), "nginx.conf")
	if err := os.WriteFile(file, []byte("events {} http { access_log off; server { listen 127.0.0.1:80; http2 on; http2_max_concurrent_streams 7; } }"), 0o644); err != nil {
		t.Fatal(err)
	}
	s, err := nginx.New(nginx.Options{File: file, Prefix: filepath.Dir(file), Stderr: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server, served := s.Listeners()[0].NewServer(), make(chan struct{})
	go func() { defer close(served); _ = server.Serve(l) }()
	defer func() { server.Close(); <-served }()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	_, _ = io.WriteString(conn, http2.ClientPreface)
	f := http2.NewFramer(conn, conn)
	_ = f.WriteSettings()
	frame, err := f.ReadFrame()
	if err != nil {
		t.Fatal(err)
	}
	settings, ok := frame.(*http2.SettingsFrame)
	if !ok {
		t.Fatal(frame)
	}
	if n, ok := settings.Value(http2.SettingMaxConcurrentStreams); !ok || n != 7 {
		t.Errorf("%d streams, %v", n, ok)
	}
}
