// Command sockets is a gateway for WebSockets: each user has a server of their own. It bounds how many WebSockets there are,
// looks at their messages, and ends them with a Close frame when it is deployed anew.
//
// The file of -users names them by the value of the cookie "session":
//
//	{"SESSION": {"user": "ann", "target": "http://127.0.0.1:9001"}}
package main

import (
	"context"
	"encoding/json"
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

	"github.com/culvert-go/culvert/server"
	"github.com/culvert-go/culvert/upstream"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout, func(addr net.Addr) { log.Println("listening on", addr) })
	if err != nil {
		log.Fatal(err)
	}
}

// config is what the gateway needs to know.
type config struct {
	users     map[string]user // by session
	origins   []string
	max       int // WebSockets
	perUser   int
	idle      time.Duration
	forbidden string // what no message of a client may hold
	log       *slog.Logger
}

type user struct {
	Name   string `json:"user"`
	Target string `json:"target"` // a URL
	target upstream.Target
}

func run(ctx context.Context, args []string, logs io.Writer, ready func(net.Addr)) error {
	c := config{log: slog.New(slog.NewJSONHandler(logs, nil))}
	flags := flag.NewFlagSet("sockets", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the error says it
	listen := flags.String("listen", "127.0.0.1:8443", "`address` to listen on")
	certificate := flags.String("cert", "", "`file` with the certificate")
	key := flags.String("key", "", "`file` with its key")
	users := flags.String("users", "", "`file` with the users")
	origins := flags.String("origins", "", "origins of further pages, `list` with commas")
	grace := flags.Duration("grace", 20*time.Second, "time for the clients to leave at the end")
	flags.IntVar(&c.max, "max", 10_000, "WebSockets at a time")
	flags.IntVar(&c.perUser, "per-user", 5, "WebSockets of a user at a time")
	flags.DurationVar(&c.idle, "idle", time.Hour, "how long a WebSocket may be silent")
	flags.StringVar(&c.forbidden, "forbidden", "", "what no message may hold")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *origins != "" {
		c.origins = strings.Split(*origins, ",")
	}
	var err error
	if c.users, err = readUsers(*users); err != nil {
		return fmt.Errorf("-users: %w", err)
	}
	g, err := newGateway(c)
	if err != nil {
		return err
	}
	defer g.close()
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		return fmt.Errorf("-listen: %w", err)
	}
	s := &server.Server{Handler: g, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		MaxConns: 2 * c.max, ErrorLog: slog.NewLogLogger(c.log.Handler(), slog.LevelWarn)}
	failed := make(chan error, 1)
	go func() { failed <- s.ServeTLS(listener, *certificate, *key) }()
	ready(listener.Addr())
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.Background(), *grace)
	defer cancel()
	err = errors.Join(g.drain(end), s.Shutdown(end))
	if served := <-failed; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

func readUsers(file string) (map[string]user, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	users := map[string]user{}
	if err := json.Unmarshal(content, &users); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	for session, u := range users {
		if u.target, err = upstream.ParseTarget(u.Target); err != nil {
			return nil, fmt.Errorf("%s: user %q: %w", file, u.Name, err)
		}
		users[session] = u
	}
	return users, nil
}
