package conf

import "strings"

const ofMail = "mail is not proxied"

// refused lists the directives that a configuration can't do without, each with the reason why
// culvert has no counterpart.
var refused = map[string]string{
	"add_header_inherit":        "",
	"add_trailer_inherit":       "",
	"geoip_city":                "the databases of GeoIP are discontinued",
	"geoip_country":             "the databases of GeoIP are discontinued",
	"geoip_org":                 "the databases of GeoIP are discontinued",
	"geoip_proxy":               "the databases of GeoIP are discontinued",
	"geoip_proxy_recursive":     "the databases of GeoIP are discontinued",
	"image_filter":              "pictures are not changed",
	"image_filter_buffer":       "pictures are not changed",
	"image_filter_interlace":    "pictures are not changed",
	"image_filter_jpeg_quality": "pictures are not changed",
	"image_filter_sharpen":      "pictures are not changed",
	"image_filter_transparency": "pictures are not changed",
	"image_filter_webp_quality": "pictures are not changed",
	"mail":                      ofMail,
	"perl":                      "there is no Perl",
	"perl_modules":              "there is no Perl",
	"perl_require":              "there is no Perl",
	"perl_set":                  "there is no Perl",
	"xml_entities":              "XML is not transformed",
	"xslt_last_modified":        "XML is not transformed",
	"xslt_param":                "XML is not transformed",
	"xslt_string_param":         "XML is not transformed",
	"xslt_stylesheet":           "XML is not transformed",
	"xslt_types":                "XML is not transformed",
}

// inside lists the directives that stand in blocks which are refused as a whole.
var inside = map[string][]string{
	ofMail: {"auth_http", "auth_http_header", "auth_http_pass_client_cert", "auth_http_timeout", "imap_auth", "imap_capabilities", "imap_client_buffer",
		"max_errors", "pop3_auth", "pop3_capabilities", "protocol", "proxy_buffer", "proxy_pass_error_message", "proxy_smtp_auth", "smtp_auth",
		"smtp_capabilities", "smtp_client_buffer", "smtp_greeting_delay", "starttls", "timeout", "xclient"},
}

// likeProxy are the modules whose directives that are not implemented are treated as those of the proxy module: fastcgi_cache as
// proxy_cache.
var likeProxy = []string{"fastcgi_", "grpc_", "memcached_", "scgi_", "tunnel_", "uwsgi_"}

// asProxy returns the name of the proxy module's directive for one of them.
func asProxy(name string) (string, bool) {
	for _, prefix := range likeProxy {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			return "proxy_" + rest, true
		}
	}
	return "", false
}
