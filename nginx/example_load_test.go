package nginx_test

import (
	"context"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/culvert-go/culvert/nginx"
)

// A program that serves a configuration on the addresses that the file names, reloads it at SIGHUP,
// and ends when requests and tunnels have ended.
func ExampleLoad() {
	s, err := nginx.Load("/etc/nginx/nginx.conf")
	if err != nil {
		log.Fatal(err) // a *conf.Error names the file, the line and the directive
	}
	defer s.Close()
	if err := s.Start(); err != nil {
		log.Fatal(err)
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP, syscall.SIGTERM)
	for got := range signals {
		if got == syscall.SIGTERM {
			break
		}
		if err := s.Reload(); err != nil {
			log.Print(err) // the former configuration continues to serve
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		log.Print(err)
	}
}
