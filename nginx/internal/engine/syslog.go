package engine

import (
	"bytes"
	"log/slog"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/culvert-go/culvert/nginx/conf"
)

// syslogServer is where "syslog:server=..." sends lines, a datagram each (RFC 3164,
// ngx_syslog.c). What the server does not accept at once is lost: no request waits for a log.
type syslogServer struct {
	syslogOptions
	hostname string
	engine   *Engine // whose main error log reports failures

	mu     sync.Mutex
	conn   net.Conn // nil before the first line, and after a failure
	closed bool
}

// syslogFailure is why a line was lost. An empty text is a full queue, for which nginx logs
// no reason.
type syslogFailure struct {
	level slog.Level
	text  string
}

const (
	syslogPrefix = "syslog:"
	// maxErrorLine is nginx's maximum length of an error's line (NGX_MAX_ERROR_STR), without the
	// line end.
	maxErrorLine = 2047
)

// newSyslog parses the first argument of d, "syslog:server=address[,parameter=value ...]".
func newSyslog(c *compiler, d *conf.Directive) (*syslogServer, error) {
	options, err := parseSyslog(d, strings.TrimPrefix(d.Args[0], syslogPrefix))
	if err != nil {
		return nil, err
	}
	host, _ := os.Hostname() // "" if it is not known
	s := &syslogServer{syslogOptions: options, hostname: strings.ToLower(host), engine: c.engine}
	c.engine.syslogs = append(c.engine.syslogs, s)
	return s, nil
}

// log sends the line of an access log.
func (s *syslogServer) log(x logged, line *logFormat) {
	compose(func(b []byte) []byte {
		return line.Append(s.appendHead(b, s.severity, time.Now()), x.variables())
	}, func(b []byte) {
		if f := s.send(b); f != nil {
			s.report(f)
			x.logAt(slog.LevelWarn, "send() to syslog failed while logging request", "")
		}
	})
}

// logError sends a line of an error log, with the severity of its level. If report is set, a
// failure is reported to the main error log.
func (s *syslogServer) logError(r *slog.Record, line func([]byte) []byte, report bool) {
	compose(func(b []byte) []byte {
		b = s.appendHead(b, syslogSeverity(r.Level), r.Time)
		start := len(b)
		b = line(b)
		return b[:min(len(b), start+maxErrorLine)]
	}, func(b []byte) {
		if f := s.send(b); f != nil && report {
			s.report(f)
		}
	})
}

// appendHead appends the header of a message.
func (s *syslogServer) appendHead(b []byte, severity int, at time.Time) []byte {
	b = strconv.AppendInt(append(b, '<'), int64(s.facility*8+severity), 10)
	b = at.AppendFormat(append(b, '>'), "Jan _2 15:04:05 ")
	if !s.nohostname {
		b = append(append(b, s.hostname...), ' ')
	}
	return append(append(b, s.tag...), ": "...)
}

// send sends a line. If that fails the line is lost.
func (s *syslogServer) send(line []byte) *syslogFailure {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	if s.conn == nil {
		conn, err := net.Dial(s.network, s.address)
		if err != nil {
			return &syslogFailure{levelAlert, "connect() failed (" + conf.Errno(err) + ")"}
		}
		s.conn = conn
	}
	switch full, err := sendNow(s.conn, line); {
	case full:
		return &syslogFailure{}
	case err != nil:
		s.conn.Close() // the server may be running again under the same name
		s.conn = nil
		return &syslogFailure{levelError, "send() failed (" + conf.Errno(err) + ")"}
	}
	return nil
}

// report reports to the main error log why a line was lost.
func (s *syslogServer) report(f *syslogFailure) {
	if f.text == "" {
		return
	}
	text := f.text + " while logging to syslog, server: " + s.name
	r := slog.NewRecord(time.Now(), f.level, text, 0)
	s.engine.mainLog.write(&r, s)
}

// close ends the connection; what is logged afterwards is lost.
func (s *syslogServer) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed = true; s.conn != nil {
		s.conn.Close()
		s.conn = nil
	}
}

// syslogOptions are the parameters behind "syslog:".
type syslogOptions struct {
	network, address string // for net.Dial
	name             string // of the server, as it was written
	facility         int
	severity         int // of access logs; errors have their own
	tag              string
	nohostname       bool
}

// syslogFacilities are in the order of RFC 3164's numbers.
var syslogFacilities = []string{
	"kern", "user", "mail", "daemon", "auth", "intern", "lpr", "news", "uucp", "clock", "authpriv", "ftp",
	"ntp", "audit", "alert", "cron", "local0", "local1", "local2", "local3", "local4", "local5", "local6", "local7",
}

// syslogSeverities are nginx's names in the order of RFC 3164's numbers.
var syslogSeverities = func() (names []string) {
	for _, n := range slices.Backward(levelNames) {
		names = append(names, n.name)
	}
	return names
}()

func syslogSeverity(level slog.Level) int {
	return slices.Index(syslogSeverities, levelName(level))
}

// parseSyslog parses the parameters; each may be given once (ngx_syslog_parse_args).
func parseSyslog(d *conf.Directive, text string) (o syslogOptions, err error) {
	o.facility, o.severity, o.tag = slices.Index(syslogFacilities, "local7"), slices.Index(syslogSeverities, "info"), "nginx"
	given := map[string]bool{}
	for p := range strings.SplitSeq(text, ",") {
		if p == "nohostname" {
			o.nohostname = true
			continue
		}
		name, value, ok := strings.Cut(p, "=")
		set := map[string]func(*conf.Directive, string) error{
			"server": o.setServer, "facility": o.setFacility, "severity": o.setSeverity, "tag": o.setTag,
		}[name]
		switch {
		case !ok || set == nil:
			return o, d.Errorf("unknown syslog parameter \"%s\"", p)
		case given[name]:
			return o, d.Errorf("duplicate syslog \"%s\"", name)
		}
		given[name] = true
		if err := set(d, value); err != nil {
			return o, err
		}
	}
	if !given["server"] {
		return o, d.Errorf("no syslog server specified")
	}
	return o, nil
}

func (o *syslogOptions) setServer(d *conf.Directive, value string) error {
	network, address, fault := syslogAddress(value)
	if fault != "" {
		return d.Errorf("%s in syslog server \"%s\"", fault, value)
	}
	o.network, o.address, o.name = network, address, value
	return nil
}

func (o *syslogOptions) setFacility(d *conf.Directive, value string) error {
	if o.facility = slices.Index(syslogFacilities, value); o.facility < 0 {
		return d.Errorf("unknown syslog facility \"%s\"", value)
	}
	return nil
}

func (o *syslogOptions) setSeverity(d *conf.Directive, value string) error {
	if o.severity = slices.Index(syslogSeverities, value); o.severity < 0 {
		return d.Errorf("unknown syslog severity \"%s\"", value)
	}
	return nil
}

func (o *syslogOptions) setTag(d *conf.Directive, value string) error {
	if len(value) > 32 {
		return d.Errorf("syslog tag length exceeds 32")
	}
	if bytes.ContainsFunc([]byte(value), notInTag) {
		return d.Errorf("syslog \"tag\" only allows alphanumeric characters and underscore")
	}
	o.tag = value
	return nil
}

func notInTag(r rune) bool {
	return r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
}

// syslogAddress parses the address of a server. A name is looked up at load, as nginx does. fault
// is an error in nginx's words (ngx_parse_url).
func syslogAddress(text string) (network, address, fault string) {
	if isUnix(text) {
		path := text[len(unixPrefix):]
		switch {
		case path == "":
			return "", "", "no path in the unix domain socket"
		case len(path) > maxUnixPath:
			return "", "", "too long path in the unix domain socket"
		}
		_, address = listenAddr{path: path}.forNet()
		return "unixgram", address, ""
	}
	host, port, fault := syslogHostPort(text)
	if fault != "" {
		return "", "", fault
	}
	ips, err := lookup(host)
	if err != nil || len(ips) == 0 {
		return "", "", "host not found"
	}
	return "udp", net.JoinHostPort(ips[0], port), ""
}

func syslogHostPort(text string) (host, port, fault string) {
	ipv6 := strings.HasPrefix(text, "[")
	rest, found := text, false
	if ipv6 {
		host, rest, found = strings.Cut(text[1:], "]")
		if !found || rest != "" && rest[0] != ':' {
			return "", "", "invalid host"
		}
		_, port, found = strings.Cut(rest, ":")
	} else {
		host, port, found = strings.Cut(text, ":")
	}
	if strings.ContainsAny(rest, "/?") {
		return "", "", "invalid host"
	}
	if !found {
		port = "514"
	}
	if n, ok := conf.Number(port); !ok || n < 1 || n > 65535 {
		return "", "", "invalid port"
	}
	if host == "" {
		return "", "", "no host"
	}
	if ip := net.ParseIP(host); ipv6 && (ip == nil || !strings.Contains(host, ":")) {
		return "", "", "invalid IPv6 address"
	}
	return host, port, ""
}
