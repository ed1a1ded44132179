// Command edge is the gateway of a node: it is placed between the node's clients, kube-proxy
// above all, and the API server, shows the node the endpoints of its unit only, and passes
// everything else.
//
//	go run ./examples/edge -kubeconfig ~/.kube/config -node node0 -policy superedge
//	go run ./examples/edge -server https://10.0.0.1:6443 -ca ca.crt -token-file token -node node0
//
// It reads nodes and services with its own credentials, and requests endpoints with those of each
// caller: no caller sees more than the API server allows it to see, unless -share is given. It
// writes nothing.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/culvert-go/culvert/filters/topology"
	"github.com/culvert-go/culvert/server"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "edge:", err)
		os.Exit(1)
	}
}

// settings are the parsed flags.
type settings struct {
	cluster         cluster
	kubeconfig      string
	context         string
	node            string
	listen, admin   string
	tlsCert, tlsKey string
	policy          string
	fallback        bool
	share           bool
}

func parse(args []string, log io.Writer) (*settings, error) {
	s := new(settings)
	flags := flag.NewFlagSet("edge", flag.ContinueOnError)
	flags.SetOutput(log)
	flags.StringVar(&s.kubeconfig, "kubeconfig", "", "the `file` that tells the API server and the gateway's own credentials")
	flags.StringVar(&s.context, "context", "", "the `name` of the context in it; its current one if empty")
	flags.StringVar(&s.cluster.server, "server", "", "the API server's `URL`, in the place of -kubeconfig")
	flags.StringVar(&s.cluster.caFile, "ca", "", "the `file` with the certificates that it is trusted by; without one, the system's")
	flags.StringVar(&s.cluster.tokenFile, "token-file", "", "the `file` with the gateway's own token; it is read again when it changes")
	flags.StringVar(&s.cluster.certFile, "cert", "", "the `file` with the gateway's own client certificate")
	flags.StringVar(&s.cluster.keyFile, "key", "", "the `file` with its key")
	flags.StringVar(&s.node, "node", "", "the `name` of the node that this is the gateway of; without it, of the host")
	flags.StringVar(&s.listen, "listen", "127.0.0.1:10003", "the `address` for the node's clients")
	flags.StringVar(&s.admin, "admin", "127.0.0.1:10004", "the `address` of the pages for operators, which / links; it has no login")
	flags.StringVar(&s.tlsCert, "tls-cert", "", "the `file` with the certificate to serve -listen with; without one it is plain HTTP, on loopback only")
	flags.StringVar(&s.tlsKey, "tls-key", "", "the `file` with its key")
	flags.StringVar(&s.policy, "policy", "superedge", "which endpoints are shown: "+strings.Join(policyNames(), ", "))
	flags.BoolVar(&s.fallback, "fallback", false, "show all endpoints of a service where the policy leaves none that is ready")
	flags.BoolVar(&s.share, "share", false, "let callers without credentials have the gateway's own: every client that reaches -listen has its rights")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("unknown argument %q", flags.Arg(0))
	}
	return s, s.complete()
}

func policyNames() (names []string) {
	for _, p := range topology.Policies() {
		names = append(names, p.Name)
	}
	return names
}

// complete reads the kubeconfig, and refuses contradictory flags.
func (s *settings) complete() (err error) {
	switch {
	case (s.kubeconfig == "") == (s.cluster.server == ""):
		return errors.New("one of -kubeconfig and -server is needed")
	case (s.tlsCert == "") != (s.tlsKey == ""):
		return errors.New("-tls-cert and -tls-key go together")
	case s.kubeconfig != "":
		if s.cluster, err = readKubeconfig(s.kubeconfig, s.context); err != nil {
			return err
		}
	}
	if s.node == "" {
		if s.node, err = os.Hostname(); err != nil {
			return fmt.Errorf("-node is not given, and the host has no name: %w", err)
		}
		s.node = strings.ToLower(s.node) // as kubelet does
	}
	return nil
}

func (s *settings) chosen() (topology.Policy, error) {
	for _, p := range topology.Policies() {
		if p.Name == s.policy {
			if s.fallback {
				p = topology.WithFallback(p)
			}
			return p, nil
		}
	}
	return topology.Policy{}, fmt.Errorf("-policy %s: there are %s", s.policy, strings.Join(policyNames(), ", "))
}

// run serves until ctx ends.
func run(ctx context.Context, args []string, out, log io.Writer) error {
	s, err := parse(args, log)
	if err != nil {
		return err
	}
	g, err := newGateway(s, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		return err
	}
	defer g.close()
	l, err := listen(s)
	if err != nil {
		return err
	}
	defer l.Close()
	admin, err := net.Listen("tcp", s.admin)
	if err != nil {
		return err
	}
	defer admin.Close()
	scheme := map[bool]string{true: "https", false: "http"}[s.tlsCert != ""]
	fmt.Fprintf(out, "node %s, policy %s: %s://%s for kube-proxy, http://%s/debug/topology explains\n", s.node, g.policy.Name, scheme, l.Addr(), admin.Addr())
	failed := make(chan error, 2)
	for _, served := range []struct {
		l net.Listener
		h http.Handler
	}{{l, g.handler}, {admin, g.admin()}} {
		front := &server.Server{Handler: served.h, ReadHeaderTimeout: 10 * time.Second,
			HTTP2: &http.HTTP2Config{WriteByteTimeout: time.Minute}} // for clients that read nothing
		go func() { failed <- front.Serve(served.l) }()
		defer front.Close()
	}
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		return nil
	}
}
