package header_test

import (
	"maps"
	"net/http"
	"net/textproto"
	"slices"
	"testing"

	"github.com/culvert-go/culvert/internal/header"
)

func TestIsClaim(t *testing.T) {
	for name, want := range map[string]bool{
		"forwarded": true, "x-forwarded-for": true, "x-forwarded-host": true, "x-forwarded-proto": true, "x-real-ip": true,
		"x-forwarded-port": true, "x-forwarded-prefix": true, "x-forwarded-ssl": true, "x-forwarded-server": true,
		"x-original-url": true, "x-original-uri": true, "x-rewrite-url": true, "front-end-https": true,
		"x_forwarded_for": true, "X_FORWARDED_FOR": true, "x-forwarded_for": true, "x_real-ip": true, "x_original_url": true,
		"x-forwarded-user": false, "x-forwarded": false, "x-forwarded-for-2": false, "_x-forwarded-for": false,
		"x__forwarded_for": false, "via": false, "host": false, "x_user": false, "": false,
	} {
		if got := header.IsClaim(textproto.CanonicalMIMEHeaderKey(name)); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestRemoveSpellings(t *testing.T) {
	h := http.Header{"Cf-Connecting-Ip": {"a"}, "Cf_connecting_ip": {"a"}, "Cf-Connecting_ip": {"a"}, "Cf-Connecting-Ipv6": {"a"}}
	header.RemoveSpellings(h, "Cf-Connecting-Ip")
	if want := (http.Header{"Cf-Connecting-Ipv6": {"a"}}); !maps.EqualFunc(h, want, slices.Equal) {
		t.Errorf("left %v, want %v", h, want)
	}
}

// What a client could claim in a field it could claim in a trailer, too.
func TestForwardsNoClaimInATrailer(t *testing.T) {
	for name, want := range map[string]bool{
		"x-forwarded-for": false, "x_forwarded_for": false, "x-real-ip": false, "x_real_ip": false, "forwarded": false,
		"x-original-url": false, "x_original_url": false, "x-client-ip": false, "x-forwarded-user": false, "x-sum": true, "x_sum": true,
	} {
		if got := header.ForwardsRequestTrailer(textproto.CanonicalMIMEHeaderKey(name)); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestRemoveClaims(t *testing.T) {
	for trusted, want := range map[bool]http.Header{
		false: {"X-User": {"u"}, "X_user": {"u"}},
		true:  {"X-User": {"u"}, "X_user": {"u"}, "X-Forwarded-Port": {"443"}, "X-Original-Url": {"/a"}},
	} {
		h := http.Header{"X-User": {"u"}, "X_user": {"u"}, "X-Forwarded-Port": {"443"}, "X-Original-Url": {"/a"},
			"X-Forwarded-For": {"a"}, "X-Real-Ip": {"a"}, "Forwarded": {"for=a"}, "X-Forwarded-Host": {"a"}, "X-Forwarded-Proto": {"https"},
			"X_forwarded_for": {"a"}, "X_forwarded_port": {"1"}, "X_original_url": {"/b"}}
		header.RemoveClaims(h, trusted)
		if !maps.EqualFunc(h, want, slices.Equal) {
			t.Errorf("trusted %v: left %v, want %v", trusted, h, want)
		}
	}
}
