// Package command is nginx's command line over package nginx: flags, the test of a
// configuration, signals and the pid file.
package command

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"github.com/culvert-go/culvert/nginx"
	"github.com/culvert-go/culvert/nginx/internal/syserror"
)

// Run runs the command line, without the program's name, until the server has ended, and returns
// the exit status. It must not be called concurrently: signals belong to the process.
func Run(args []string, stdout, stderr io.Writer) int {
	return RunWith(nginx.Options{}, args, stdout, stderr)
}

// RunWith is Run for a program with handlers, directives and variables of its own, which are those of program: -t knows them, too.
// Its ReadFile is used as well. Prefix, File, Globals, ErrorLog, Stderr and Listeners are the command line's and the process's.
// With "daemon on" the process starts its own file again, with args: they must lead to this call.
func RunWith(program nginx.Options, args []string, stdout, stderr io.Writer) int {
	o, err := parseOptions(args)
	o.program = program
	if err != nil {
		fmt.Fprintf(stderr, "nginx: %v\n", err)
		return 1
	}
	if o.help || o.version || o.configure {
		printVersion(o, stderr)
		return 0
	}
	if err := touchErrorLog(o); err != nil {
		fmt.Fprintf(stderr, "nginx: [alert] could not open error log file: %v\n", syserror.Open(err))
	}
	switch {
	case o.signal != "":
		return sendSignal(o, stderr)
	case o.test:
		return testConfiguration(o, stdout, stderr)
	}
	return runServer(o, args, stderr)
}

// runServer serves in the foreground, or in a process of its own if the configuration says "daemon on" and this one is no
// successor of another (ngx_init_cycle's ngx_inherited).
func runServer(o options, args []string, stderr io.Writer) int {
	waiting := detached()
	_, successor := os.LookupEnv(inheritedEnv)
	load := o.load(stderr)
	given, err := inherited()
	if err != nil {
		fmt.Fprintf(stderr, "nginx: [emerg] %v\n", err)
		return 1
	}
	load.Listeners, load.PacketConns = given.listeners, given.packets
	s, err := nginx.New(load)
	if err != nil {
		fmt.Fprintf(stderr, "nginx: [emerg] %v\n", err)
		return 1
	}
	if s.Daemon() && waiting == nil && !successor {
		s.Close()
		return detach(args, stderr)
	}
	return serve(s, successor, waiting != nil, stderr, func() {
		if waiting != nil {
			sayReady(waiting, s)
		}
	})
}

// configured names those of nginx's modules that need an argument of its configure script, by which programs find out what a
// binary can do.
const configured = " --with-http_ssl_module --with-http_v2_module --with-http_v3_module --with-http_realip_module --with-http_sub_module" +
	" --with-http_gunzip_module --with-http_gzip_static_module --with-http_auth_request_module --with-http_secure_link_module" +
	" --with-http_stub_status_module --with-http_addition_module --with-http_dav_module --with-http_random_index_module --with-http_slice_module --with-http_flv_module --with-http_mp4_module" +
	" --with-stream --with-stream_ssl_module --with-stream_realip_module --with-stream_ssl_preread_module"

// tlsFeatures says what the TLS library is, and in nginx's words what it can do: programs such as certbot look for the version of
// OpenSSL to know whether a server has TLS 1.3, ALPN and certificates with variables.
const tlsFeatures = "TLS by crypto/tls: TLS 1.3, ALPN and variable certificates, as an nginx built with OpenSSL 1.1.1 has them"

// printVersion implements -v, -V and -h, on standard error as nginx does.
func printVersion(o options, stderr io.Writer) {
	fmt.Fprintln(stderr, version())
	if o.configure {
		fmt.Fprintf(stderr, "built by %s\n%s\nTLS SNI support enabled\nconfigure arguments:%s\n", runtime.Version(), tlsFeatures, configured)
	}
	if o.help {
		fmt.Fprint(stderr, usage)
	}
}

// touchErrorLog creates the file of -e before the configuration is read, so that errors in the
// configuration can be logged.
func touchErrorLog(o options) error {
	if o.errorLog == "" || o.errorLog == "stderr" {
		return nil
	}
	name := o.errorLog
	if !filepath.IsAbs(name) {
		name = filepath.Join(o.prefix, name)
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	return f.Close()
}

// errorsOf returns the errors that -t prints: the first, or all of them.
func errorsOf(o options, first error, stderr io.Writer) []error {
	if !o.all {
		return []error{first}
	}
	return nginx.Check(o.load(stderr))
}

// testConfiguration implements -t and -T.
func testConfiguration(o options, stdout, stderr io.Writer) int {
	file := o.configurationFile()
	if !o.quiet {
		printNotes(nginx.Notes(o.load(stderr)), stderr)
	}
	s, err := nginx.New(o.load(stderr))
	if err != nil {
		for _, err := range errorsOf(o, err, stderr) {
			fmt.Fprintf(stderr, "nginx: [emerg] %v\n", err)
		}
		fmt.Fprintf(stderr, "nginx: configuration file %s test failed\n", file)
		return 1
	}
	defer s.Close()
	if err := openPIDFile(s.PIDFile()); err != nil {
		fmt.Fprintf(stderr, "nginx: [emerg] %v\nnginx: configuration file %s test failed\n", err, file)
		return 1
	}
	if !o.quiet {
		fmt.Fprintf(stderr, "nginx: the configuration file %s syntax is ok\nnginx: configuration file %s test is successful\n", file, file)
	}
	if o.dump {
		s.Dump(stdout)
	}
	return 0
}
