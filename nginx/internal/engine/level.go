package engine

import (
	"time"

	"github.com/culvert-go/culvert/nginx/internal/engine/static"
	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
)

// level is the compiled form of the directives of http, a server or a location, including what it
// inherits from the levels around it. A request runs under one level at a time; an internal
// redirect may change it.
type level struct {
	// inherited
	absoluteRedirect  bool
	access            []accessRule
	accessLogs        []accessLogger
	addHeaders        []header
	addTrailers       []header
	auth              authRule
	authRequest       authRequestRule
	autoindex         autoindexRule
	bodyLimit         int64 // 0 is none
	bodyTimeout       time.Duration
	charset           charsetRule
	defaultType       string
	errorLog          *errorLogger
	errorPages        []errorPageRule
	etag              bool
	expires           expiresRule
	gzip              gzipSettings
	headBytes         int // large_client_header_buffers
	gunzip            bool
	gzipStatic        precompressed
	headTimeout       time.Duration
	http2             bool
	index             []vars.Value
	internal          bool // also the locations inside
	limitConn         limitConnSettings
	limitReq          limitReqSettings
	invalidFields     bool // ignore_invalid_headers off
	keepalive         time.Duration
	keepaliveRequests int
	keepaliveSaid     string // value of the Keep-Alive field, in seconds; "" is none
	keepaliveTime     time.Duration
	mergeSlashes      bool
	mirror            mirrorRule
	modifiedSince     static.Since
	portInRedirect    bool
	proxy             proxySettings
	realIP            realIPRule
	rate              rateRule
	recursive         bool // recursive_error_pages
	referers          refererRule
	resolver          *resolverRule
	root              rootRule
	satisfyAny        bool
	secureLink        secureLinkRule
	sendTimeout       time.Duration
	serverNameFirst   bool // server_name_in_redirect
	ssl               sslSettings
	sub               subSettings
	types             map[string]string
	underscores       bool // underscores_in_headers
	userid            useridRule

	local
	server *server         // nil on http's level
	own    map[string]bool // the families of directives that are set on this level itself
}

// local is what a level does not inherit.
type local struct {
	name      string // the location's name: its prefix or regular expression
	kind      locationKind
	pass      *passRule
	status    bool // stub_status
	script    script
	ifs       []*ifRule // their blocks have yet to be compiled
	tries     *tryRule
	except    *exceptRule
	condition bool // the block of an if
}

// newLevel returns http's level with nginx's defaults.
func newLevel() *level {
	return &level{
		absoluteRedirect:  true,
		autoindex:         autoindexRule{format: "html"},
		bodyLimit:         1 << 20,
		bodyTimeout:       time.Minute,
		charset:           defaultCharset(),
		etag:              true,
		sub:               defaultSub(),
		userid:            defaultUserid(),
		ssl:               sslSettings{client: clientCertRule{depth: 1}},
		sendTimeout:       time.Minute,
		defaultType:       "text/plain",
		gzip:              defaultGzip(),
		headBytes:         32 << 10,
		headTimeout:       time.Minute,
		index:             []vars.Value{vars.Constant("index.html")},
		limitConn:         limitConnSettings{status: 503, level: levelError},
		limitReq:          limitReqSettings{status: 503, level: levelError},
		keepalive:         75 * time.Second,
		keepaliveRequests: 1000,
		keepaliveTime:     time.Hour,
		mergeSlashes:      true,
		portInRedirect:    true,
		proxy:             defaultProxySettings(),
		realIP:            realIPRule{field: "X-Real-IP"},
		root:              rootRule{value: vars.Constant("html")},
		types:             defaultTypes(),
	}
}

// child returns a level inside l, before any directive of its own.
func (l *level) child() *level {
	c := *l
	c.local = local{}
	c.own = nil
	return &c
}

// first reports whether the family has not been set on this level itself before. The caller drops
// inherited values then, as nginx does for every directive that may be repeated.
func (l *level) first(family string) bool {
	if l.own[family] {
		return false
	}
	if l.own == nil {
		l.own = map[string]bool{}
	}
	l.own[family] = true
	return true
}
