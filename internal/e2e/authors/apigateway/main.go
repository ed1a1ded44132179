// Command apigateway is a gateway for two APIs: a catalog that everyone may read, and orders for those with a JSON Web Token
// that an authorization service accepts. Rates are limited in Redis, for all gateways together.
//
// The environment has JWT_SECRET, the secret of the tokens (HS256).
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/culvert-go/culvert/server"
	"github.com/culvert-go/culvert/upstream"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Getenv, os.Stdout, func(addr net.Addr) { log.Println("listening on", addr) })
	if err != nil {
		log.Fatal(err)
	}
}

// config is what the gateway needs to know.
type config struct {
	secret                     []byte
	orders, catalog, authorize []upstream.Target
	redis                      *redis.Client
	origins                    []string
	rate                       int // requests of a user, or of an address, in an hour
	maxBody                    int64
	log                        *slog.Logger
}

func run(ctx context.Context, args []string, getenv func(string) string, logs io.Writer, ready func(net.Addr)) (err error) {
	c := config{secret: []byte(getenv("JWT_SECRET")), log: slog.New(slog.NewJSONHandler(logs, nil))}
	flags := flag.NewFlagSet("apigateway", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the error says it
	listen := flags.String("listen", "127.0.0.1:8443", "`address` to listen on")
	certificate := flags.String("cert", "", "`file` with the certificate")
	key := flags.String("key", "", "`file` with its key")
	database := flags.String("redis", "redis://127.0.0.1:6379", "`URL` of Redis")
	origins := flags.String("origins", "", "origins of the pages that may use the APIs, `list` with commas")
	orders := flags.String("orders", "", "URLs of the orders, `list` with commas")
	catalog := flags.String("catalog", "", "URLs of the catalog, `list` with commas")
	authorize := flags.String("authorize", "", "`URL` of the authorization service")
	flags.IntVar(&c.rate, "rate", 1000, "requests in an hour")
	flags.Int64Var(&c.maxBody, "max-body", 1<<20, "`bytes` of a request's body")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if len(c.secret) < 32 {
		return errors.New("JWT_SECRET has less than 32 bytes")
	}
	for _, list := range []struct {
		flag, urls string
		targets    *[]upstream.Target
	}{{"orders", *orders, &c.orders}, {"catalog", *catalog, &c.catalog}, {"authorize", *authorize, &c.authorize}} {
		for url := range strings.SplitSeq(list.urls, ",") {
			target, err := upstream.ParseTarget(url)
			if err != nil {
				return fmt.Errorf("-%s: %w", list.flag, err)
			}
			*list.targets = append(*list.targets, target)
		}
	}
	if *origins != "" {
		c.origins = strings.Split(*origins, ",")
	}
	options, err := redis.ParseURL(*database)
	if err != nil {
		return fmt.Errorf("-redis: %w", err)
	}
	options.ContextTimeoutEnabled = true // the store's calls end with StoreTimeout
	c.redis = redis.NewClient(options)
	defer func() { err = errors.Join(err, c.redis.Close()) }()
	g, err := newGateway(c)
	if err != nil {
		return err
	}
	defer g.close()
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		return fmt.Errorf("-listen: %w", err)
	}
	s := &server.Server{Handler: g, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxConns: 10_000,
		HTTP2:    &http.HTTP2Config{WriteByteTimeout: time.Minute},
		ErrorLog: slog.NewLogLogger(c.log.Handler(), slog.LevelWarn)}
	failed := make(chan error, 1)
	go func() { failed <- s.ServeTLS(listener, *certificate, *key) }()
	ready(listener.Addr())
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	err = s.Shutdown(grace)
	if served := <-failed; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}
