package engine

import (
	"path/filepath"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
)

// compiler compiles directives into levels, servers and handlers.
type compiler struct {
	engine  *Engine
	prefix  string // what paths are relative to
	confDir string // what ssl_certificate and include are relative to
	scope   *vars.Scope
	formats map[string]logFormat
	groups  map[string]*group
	servers []*server

	run      map[string]compileFunc
	deferred []func() error // called when all of http is compiled
	before   shared         // of the configuration that is replaced, empty for the first
}

// compileFunc compiles one directive into the level that it stands on.
type compileFunc func(c *compiler, l *level, d *conf.Directive) error

// directives maps each directive to the function that compiles it. The function is in the file of
// the directive's name, or of its family's.
func directives() map[string]compileFunc {
	return map[string]compileFunc{
		"absolute_redirect":             absoluteRedirect,
		"access_log":                    accessLog,
		"add_header":                    addHeader,
		"add_trailer":                   addTrailer,
		"alias":                         alias,
		"allow":                         access,
		"auth_basic":                    authBasic,
		"auth_basic_user_file":          authBasicUserFile,
		"auth_request":                  authRequest,
		"auth_request_set":              authRequestSet,
		"autoindex":                     autoindex,
		"autoindex_exact_size":          autoindexExactSize,
		"autoindex_format":              autoindexFormat,
		"autoindex_localtime":           autoindexLocaltime,
		"break":                         breakDirective,
		"charset":                       charset,
		"charset_types":                 charsetTypes,
		"client_body_buffer_size":       clientBodyBufferSize,
		"client_body_temp_path":         clientBodyTempPath,
		"client_body_timeout":           clientBodyTimeout,
		"client_header_timeout":         clientHeaderTimeout,
		"client_max_body_size":          clientMaxBodySize,
		"default_type":                  defaultType,
		"deny":                          access,
		"error_log":                     errorLog,
		"error_page":                    errorPage,
		"etag":                          etagDirective,
		"events":                        nothing, // holds no-ops only
		"expires":                       expires,
		"geo":                           nothing, // see declareVariables
		"gunzip":                        gunzipDirective,
		"gzip":                          gzipDirective,
		"gzip_comp_level":               gzipDirective,
		"gzip_disable":                  gzipDirective,
		"gzip_http_version":             gzipDirective,
		"gzip_min_length":               gzipDirective,
		"gzip_proxied":                  gzipDirective,
		"gzip_static":                   gzipStatic,
		"gzip_types":                    gzipDirective,
		"http":                          httpBlock,
		"http2":                         http2,
		"if":                            ifDirective,
		"if_modified_since":             ifModifiedSince,
		"ignore_invalid_headers":        ignoreInvalidHeaders,
		"index":                         index,
		"internal":                      internal,
		"keepalive_requests":            keepaliveRequests,
		"keepalive_time":                keepaliveTime,
		"keepalive_timeout":             keepaliveTimeout,
		"large_client_header_buffers":   largeClientHeaderBuffers,
		"limit_conn":                    limitConn,
		"limit_conn_dry_run":            limitConnDryRun,
		"limit_conn_log_level":          limitConnLogLevel,
		"limit_conn_status":             limitConnStatus,
		"limit_conn_zone":               nothing, // see declared
		"limit_except":                  limitExcept,
		"limit_rate":                    limitRate,
		"limit_rate_after":              limitRateAfter,
		"limit_req":                     limitReq,
		"limit_req_dry_run":             limitReqDryRun,
		"limit_req_log_level":           limitReqLogLevel,
		"limit_req_status":              limitReqStatus,
		"limit_req_zone":                nothing, // see declared
		"listen":                        listen,
		"location":                      nothing, // see locations
		"log_format":                    nothing, // see declare
		"map":                           nothing, // see declare
		"merge_slashes":                 mergeSlashes,
		"mirror":                        mirrorDirective,
		"mirror_request_body":           mirrorRequestBody,
		"pid":                           pid,
		"port_in_redirect":              portInRedirect,
		"proxy_bind":                    proxyBind,
		"proxy_buffering":               proxyBuffering,
		"proxy_buffers":                 proxyBuffers,
		"proxy_connect_timeout":         proxyConnectTimeout,
		"proxy_cookie_domain":           proxyCookieDomain,
		"proxy_cookie_flags":            proxyCookieFlags,
		"proxy_cookie_path":             proxyCookiePath,
		"proxy_hide_header":             proxyHideHeader,
		"proxy_http_version":            proxyHTTPVersion,
		"proxy_ignore_headers":          proxyIgnoreHeaders,
		"proxy_intercept_errors":        proxyInterceptErrors,
		"proxy_max_temp_file_size":      proxyMaxTempFileSize,
		"proxy_method":                  proxyMethod,
		"proxy_next_upstream":           proxyNextUpstream,
		"proxy_next_upstream_timeout":   proxyNextUpstreamTimeout,
		"proxy_next_upstream_tries":     proxyNextUpstreamTries,
		"proxy_pass":                    proxyPass,
		"proxy_pass_header":             proxyPassHeader,
		"proxy_pass_request_body":       proxyPassRequestBody,
		"proxy_pass_request_headers":    proxyPassRequestHeaders,
		"proxy_read_timeout":            proxyReadTimeout,
		"proxy_redirect":                proxyRedirect,
		"proxy_request_buffering":       proxyRequestBuffering,
		"proxy_send_timeout":            proxySendTimeout,
		"proxy_set_body":                proxySetBody,
		"proxy_set_header":              proxySetHeader,
		"proxy_ssl_certificate":         proxySSLCertificate,
		"proxy_ssl_certificate_key":     proxySSLCertificate,
		"proxy_ssl_crl":                 proxySSLCRL,
		"proxy_ssl_name":                proxySSLName,
		"proxy_ssl_protocols":           proxySSLProtocols,
		"proxy_ssl_server_name":         proxySSLServerName,
		"proxy_ssl_trusted_certificate": proxySSLTrustedCertificate,
		"proxy_ssl_verify":              proxySSLVerify,
		"proxy_ssl_verify_depth":        proxySSLVerifyDepth,
		"proxy_temp_path":               proxyTempPath,
		"real_ip_header":                realIPHeader,
		"real_ip_recursive":             realIPRecursive,
		"recursive_error_pages":         recursiveErrorPages,
		"resolver":                      resolver,
		"resolver_timeout":              resolverTimeout,
		"return":                        returnDirective,
		"rewrite":                       rewrite,
		"root":                          root,
		"satisfy":                       satisfy,
		"secure_link":                   secureLink,
		"secure_link_md5":               secureLink,
		"secure_link_secret":            secureLinkSecret,
		"send_timeout":                  sendTimeout,
		"server":                        nothing, // see httpBlock
		"server_name":                   serverName,
		"server_name_in_redirect":       serverNameInRedirect,
		"set":                           set,
		"set_real_ip_from":              setRealIPFrom,
		"split_clients":                 nothing, // see declareVariables
		"ssl_certificate":               sslCertificate,
		"ssl_certificate_key":           sslCertificateKey,
		"ssl_client_certificate":        sslClientCertificate,
		"ssl_crl":                       sslCRL,
		"ssl_protocols":                 sslProtocols,
		"ssl_reject_handshake":          sslRejectHandshake,
		"ssl_trusted_certificate":       sslTrustedCertificate,
		"ssl_verify_client":             sslVerifyClient,
		"ssl_verify_depth":              sslVerifyDepth,
		"stub_status":                   stubStatus,
		"sub_filter":                    subFilter,
		"sub_filter_last_modified":      subFilterLastModified,
		"sub_filter_once":               subFilterOnce,
		"sub_filter_types":              subFilterTypes,
		"try_files":                     tryFiles,
		"types":                         types,
		"underscores_in_headers":        underscoresInHeaders,
		"upstream":                      nothing, // see declare
		"userid":                        userid,
		"userid_domain":                 userid,
		"userid_expires":                userid,
		"userid_flags":                  userid,
		"userid_name":                   userid,
		"userid_p3p":                    userid,
		"userid_path":                   userid,
		"valid_referers":                validReferers,
		"worker_shutdown_timeout":       workerShutdownTimeout,
	}
}

func nothing(*compiler, *level, *conf.Directive) error { return nil }

// block compiles the directives of one level. A name that is not in the table is a no-op: the
// parser has refused everything else.
func (c *compiler) block(l *level, list []*conf.Directive) error {
	for _, d := range list {
		if compile, ok := c.run[d.Name]; ok {
			if err := compile(c, l, d); err != nil {
				return err
			}
		}
	}
	return nil
}

// value compiles an argument with variables.
func (c *compiler) value(d *conf.Directive, text string) (vars.Value, error) {
	v, err := c.scope.Compile(text)
	if err != nil {
		return v, d.Errorf("%s", err)
	}
	return v, nil
}

// warn logs a warning about something that nginx accepts.
func (c *compiler) warn(d *conf.Directive, text string) {
	c.engine.logger.Warn(d.Errorf("%s", text).Error())
}

// path makes a name absolute, relative to the prefix.
func (c *compiler) path(name string) string { return absolute(c.prefix, name) }

func absolute(dir, name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(dir, name)
}
