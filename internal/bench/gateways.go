package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"
)

// gatewayWork is a configuration that nginx and examples/nginx both run, and the requests
// that both get.
type gatewayWork struct {
	work
	http   string // inside of http
	server string // inside of server
}

// The kinds of work of goals.
const (
	busyGateway = "add_header, access_log, map, two locations"
	smallFile   = "file of 1 KiB"
	largeFile   = "file of 1 MiB"
)

// staticFiles has the files that startConfigured writes, named by their sizes.
const staticFiles = `sendfile on; location /files/ { root {{DIR}}; open_file_cache max=100; }`

func gatewayWorkNamed(name string) gatewayWork {
	all := gatewayWorks()
	return all[slices.IndexFunc(all, func(g gatewayWork) bool { return g.name == name })]
}

// proxyAll is the usual location.
const proxyAll = `location / { proxy_pass http://origin; proxy_http_version 1.1; proxy_set_header Connection ""; }`

// gatewayWorks are the kinds of work.
func gatewayWorks() []gatewayWork {
	small, large := works()[0], works()[1]
	name := func(w work, name string) work {
		w.name = name
		return w
	}
	file := func(w work, called string) work {
		w = name(w, called)
		w.request = []byte(strings.Replace(string(w.request), "GET /", "GET /files/", 1))
		return w
	}
	text := name(small, "16 KiB of text in gzip")
	text.request = []byte(strings.Replace(head("GET", 16<<10, 0), "\r\n\r\n", "\r\nAccept-Encoding: gzip\r\n\r\n", 1))
	text.length, text.rate = anyLength, 1000
	secure := name(small, "1 KiB over TLS")
	secure.secure = true
	return []gatewayWork{
		{work: name(small, "1 KiB"), server: proxyAll},
		{work: name(large, "1 MiB"), server: proxyAll},
		{work: secure, server: "ssl_certificate cert.pem; ssl_certificate_key key.pem; " + proxyAll},
		{work: text, http: "gzip on; gzip_types text/plain; gzip_comp_level 1;", server: proxyAll},
		{work: name(small, "ten header rules"), server: headerRules() + proxyAll},
		{work: name(small, "twenty regular expressions"), server: patterns()},
		{work: name(small, "a log of fifteen variables"), http: logOf15, server: "access_log access.log long; " + proxyAll},
		{work: file(small, smallFile), server: staticFiles},
		{work: file(large, largeFile), server: staticFiles},
		{work: name(small, busyGateway), http: `map $http_upgrade $connection_upgrade { default upgrade; "" ""; } ` + logOf15, server: `access_log access.log long; add_header X-Gateway yes;
location /static/ { return 200 "static"; } location / { proxy_pass http://origin; proxy_http_version 1.1; proxy_set_header Connection $connection_upgrade; proxy_set_header X-Real-IP $remote_addr; }`},
	}
}

const logOf15 = `log_format long '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent" $host $request_length $request_time $upstream_addr $upstream_status $upstream_response_time $server_name'; `

func headerRules() string {
	var b strings.Builder
	for i := range 10 {
		fmt.Fprintf(&b, "add_header X-Rule-%d \"$host %d\" always; ", i, i)
	}
	return b.String()
}

// patterns are twenty locations, of which the last fits.
func patterns() string {
	var b strings.Builder
	for i := range 19 {
		fmt.Fprintf(&b, `location ~ ^/section%d/(?:[a-z]+)/(\d+)\.html$ { return 404; } `, i)
	}
	return b.String() + strings.Replace(proxyAll, "location /", `location ~ ^/(\d+)$`, 1)
}

// conf is the whole file. Both get the same.
func (g gatewayWork) conf() string {
	listen := "{{ADDRESS}}"
	if g.secure {
		listen += " ssl"
	}
	return `worker_processes 2; pid nginx.pid; error_log stderr crit;
events { worker_connections 1024; }
http {
  access_log off; keepalive_requests 1000000000; default_type text/plain;
  client_body_temp_path body; proxy_temp_path proxy;
  upstream origin { server {{TARGET}}; keepalive 128; keepalive_requests 1000000000; }
  ` + g.http + `
  server { listen ` + listen + `; server_name bench.example; ` + g.server + ` }
}
`
}

// exampleProgram builds examples/nginx once.
var exampleProgram = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "culvert-bench-")
	if err != nil {
		return "", err
	}
	program := filepath.Join(dir, "nginx")
	build := exec.Command("go", "build", "-o", program, "./nginx")
	build.Dir, build.Env = "../../examples", append(os.Environ(), "GOWORK=") // the workspace
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building examples/nginx: %w\n%s", err, out)
	}
	return program, nil
})

// startGateway runs nginx, or the example on as many processors as nginx has workers.
func startGateway(name, target string, g gatewayWork) (*process, error) {
	if name == "nginx" {
		return startConfigured(g.conf(), target, func(dir, file string) []string {
			return append(nginxLine(dir, file), "-g", "daemon off;")
		})
	}
	program, err := exampleProgram()
	if err != nil {
		return nil, err
	}
	return startConfigured(g.conf(), target, func(dir, file string) []string {
		return []string{"env", "GOMAXPROCS=2", program, "-p", dir, "-c", file, "-e", "stderr"}
	})
}

// productName is the peer that runs nginx's configurations with culvert.
const productName = "examples/nginx"

// gateways are compared; the first is the measure.
var gateways = []string{"nginx", productName}

// gatewayPeers are the gateways with the configuration of g.
func gatewayPeers(g gatewayWork) (list []peer) {
	for _, name := range gateways {
		list = append(list, peer{name: name, missing: notInstalled("nginx"), start: func(name, target string) (*process, error) {
			return startGateway(name, target, g)
		}})
	}
	return list
}

// runGateways prints a row for each work: what each gateway does, and the ratios.
func runGateways(out io.Writer, p plan, only string) error {
	origin, err := startSelf(bareName, "")
	if err != nil {
		return err
	}
	defer origin.stop()
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "work\tnginx CPU µs/req\texample CPU µs/req\treq/s per CPU : nginx\treq/s : nginx\tRSS MiB, nginx\texample\t\n")
	for _, g := range gatewayWorks() {
		if !strings.Contains(g.name, only) {
			continue
		}
		rounds := map[string][]gatewayMeasurement{}
		for range p.rounds {
			for _, name := range gateways {
				m, err := measureGateway(name, origin.address, p, g)
				if err != nil {
					return fmt.Errorf("%s, %s: %w", g.name, name, err)
				}
				rounds[name] = append(rounds[name], m)
			}
		}
		theirs, ours := rounds[gateways[0]], rounds[gateways[1]]
		of := func(f func(i int) float64) float64 { return medianOf(p.rounds, f) }
		fmt.Fprintf(t, "%s\t%.1f\t%.1f\t%.2f\t%.2f\t%.1f\t%.1f\t\n", g.name,
			of(func(i int) float64 { return theirs[i].cpu }), of(func(i int) float64 { return ours[i].cpu }),
			of(func(i int) float64 { return theirs[i].cpu / ours[i].cpu }), of(func(i int) float64 { return ours[i].perSecond / theirs[i].perSecond }),
			of(func(i int) float64 { return theirs[i].rss }), of(func(i int) float64 { return ours[i].rss }))
	}
	return t.Flush()
}

// gatewayMeasurement is one gateway in one round.
type gatewayMeasurement struct{ perSecond, cpu, rss float64 }

func measureGateway(name, target string, how plan, g gatewayWork) (m gatewayMeasurement, err error) {
	process, err := startGateway(name, target, g)
	if err != nil {
		return m, err
	}
	defer process.stop()
	if _, err = load(process.address, g.work, how.connections, how.duration/4); err != nil {
		return m, err
	}
	before, err := process.usedSoFar()
	if err != nil {
		return m, err
	}
	start := time.Now()
	n, err := load(process.address, g.work, how.connections, how.duration)
	took := time.Since(start)
	if err != nil {
		return m, err
	}
	after, err := process.usedSoFar()
	return gatewayMeasurement{
		perSecond: float64(n) / took.Seconds(),
		cpu:       float64((after.cpu - before.cpu).Microseconds()) / float64(n),
		rss:       float64(after.rss) / (1 << 20),
	}, err
}

// manyServers is a configuration of n servers with five locations each.
func manyServers(n int) string {
	var b strings.Builder
	b.WriteString("events {}\nhttp { access_log off;\n")
	for i := range n {
		s := strconv.Itoa(i)
		b.WriteString("upstream u" + s + " { server 127.0.0.1:" + strconv.Itoa(10000+i) + "; server 127.0.0.2:9000 backup; }\nserver { listen 127.0.0.1:8080; server_name s" + s + ".example *.s" + s + `.example;
  location / { proxy_pass http://u` + s + `; proxy_set_header Host $host; proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; }
  location = /health { return 200 ok; } location ~ \.php$ { return 404; } location ~* \.(css|js|png)$ { expires 7d; root html; }
  location /api/ { proxy_pass http://u` + s + "/v1/; proxy_read_timeout 90s; add_header X-Api yes always; } }\n")
	}
	b.WriteString("}\n")
	return b.String()
}
