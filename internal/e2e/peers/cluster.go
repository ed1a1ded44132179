package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiproxy "k8s.io/apiserver/pkg/util/proxy"
	utilexec "k8s.io/utils/exec"

	utilproxy "k8s.io/apimachinery/pkg/util/proxy"
	"k8s.io/cri-streaming/pkg/streaming/portforward"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	"k8s.io/streaming/pkg/httpstream/wsstream"

	"github.com/culvert-go/culvert/internal/e2e/discovery"
)

// cluster serves what kubectl needs of a cluster: an API server's paths in front of its own handlers for streams, and a node
// with the streaming code of the CRI. The pod's containers are functions.
func cluster() error {
	node := httptest.NewServer(nodeHandler())
	l, err := listen()
	if err != nil {
		return err
	}
	go func() { _ = http.Serve(l, apiserverHandler(node.URL)) }()
	untilInputEnds()
	return nil
}

func apiserverHandler(node string) http.Handler {
	mux := http.NewServeMux()
	discovery.Handle(mux)
	discovery.HandleJSON(mux, "/api/v1/namespaces/default/pods/pod", corev1.Pod{
		TypeMeta:   metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{Name: "pod", Namespace: "default", UID: "uid"},
		Spec:       corev1.PodSpec{NodeName: "node", Containers: []corev1.Container{{Name: "container", Stdin: true}}},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning},
	})
	for _, verb := range []string{"exec", "attach", "portforward"} {
		mux.Handle("/api/v1/namespaces/default/pods/pod/"+verb, streamHandler(node, verb))
	}
	return mux
}

// streamHandler is what pkg/registry/core/pod/rest/subresources.go does with a stream.
func streamHandler(node, verb string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		location, err := url.Parse(node + "/" + verb + "?" + r.URL.RawQuery)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		plain := utilproxy.NewUpgradeAwareHandler(location, http.DefaultTransport, false, true, refuser{})
		plain.UseRequestLocation = false
		var h http.Handler
		if verb == "portforward" {
			h = apiproxy.NewTranslatingHandler(plain, apiproxy.NewTunnelingHandler(plain), wsstream.IsWebSocketRequestWithTunnelingProtocol)
		} else {
			q := r.URL.Query()
			o := apiproxy.Options{Stdin: q.Get("stdin") == "true", Stdout: q.Get("stdout") == "true", Stderr: q.Get("stderr") == "true", Tty: q.Get("tty") == "true"}
			h = apiproxy.NewTranslatingHandler(plain, apiproxy.NewStreamTranslatorHandler(location, nil, 0, o), wsstream.IsWebSocketRequestWithStreamCloseProtocol)
		}
		h.ServeHTTP(w, r)
	})
}

type refuser struct{}

func (refuser) Error(w http.ResponseWriter, _ *http.Request, err error) {
	http.Error(w, err.Error(), http.StatusBadGateway)
}

func nodeHandler() http.Handler {
	mux := http.NewServeMux()
	options := func(r *http.Request) *remotecommand.Options {
		q := r.URL.Query()
		return &remotecommand.Options{Stdin: q.Get("stdin") == "true", Stdout: q.Get("stdout") == "true", Stderr: q.Get("stderr") == "true", TTY: q.Get("tty") == "true"}
	}
	mux.HandleFunc("/exec", func(w http.ResponseWriter, r *http.Request) {
		remotecommand.ServeExec(w, r, container{}, "pod", "uid", "container", r.URL.Query()["command"], options(r), time.Hour, time.Minute, remotecommand.SupportedStreamingProtocols)
	})
	mux.HandleFunc("/attach", func(w http.ResponseWriter, r *http.Request) {
		remotecommand.ServeAttach(w, r, container{}, "pod", "uid", "container", options(r), time.Hour, time.Minute, remotecommand.SupportedStreamingProtocols)
	})
	mux.HandleFunc("/portforward", func(w http.ResponseWriter, r *http.Request) {
		o, err := portforward.NewV4Options(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		portforward.ServePortForward(w, r, container{}, "pod", "uid", o, time.Hour, time.Minute, portforward.SupportedProtocols)
	})
	return mux
}

// container is what runs in the pod.
type container struct{}

// ExecInContainer is a shell that shows the size of its terminal, before its first prompt
// and whenever that changes, and knows one command.
func (container) ExecInContainer(_ context.Context, _, _, _ string, _ []string, in io.Reader, out, _ io.WriteCloser, _ bool, resize <-chan remotecommand.TerminalSize, _ time.Duration) error {
	size := <-resize
	fmt.Fprintf(out, "%dx%d $ ", size.Width, size.Height)
	lines := make(chan string)
	go func() {
		defer close(lines)
		for r := bufio.NewReader(in); ; {
			line, err := r.ReadString('\r')
			if err != nil {
				return
			}
			lines <- strings.TrimSpace(line)
		}
	}()
	for {
		select {
		case size := <-resize:
			fmt.Fprintf(out, "%dx%d", size.Width, size.Height)
		case line, ok := <-lines:
			switch {
			case !ok:
				return nil
			case line == "exit 7":
				return utilexec.CodeExitError{Err: fmt.Errorf("exit 7"), Code: 7}
			}
			fmt.Fprintf(out, "%s: not found", line)
		}
	}
}

// AttachContainer echoes its input, when it has all of it.
func (container) AttachContainer(_ context.Context, _, _, _ string, in io.Reader, out, _ io.WriteCloser, _ bool, _ <-chan remotecommand.TerminalSize) error {
	all, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	_, err = out.Write(all)
	return err
}

// PortForward is a server that responds when its client has ended.
func (container) PortForward(_ context.Context, _, _ string, port int32, stream io.ReadWriteCloser) error {
	heard, err := io.ReadAll(stream)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(stream, "port %d heard %s", port, heard)
	return err
}
