package engine

import (
	"crypto/tls"
	"strings"
	"time"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/certs"
)

// uncachedPairs is how many certificates are kept where there is no cache. They are used as long as their files are the same.
const uncachedPairs = 256

// certificateCache compiles "ssl_certificate_cache off|max=N [inactive=time] [valid=time]" and its like. It returns nil for off.
func certificateCache(d *conf.Directive) (*certs.Cache, error) {
	files, inactive, valid, off := 0, 10*time.Second, time.Minute, false
	for _, p := range d.Args {
		key, value, _ := strings.Cut(p, "=")
		ok := false
		switch key {
		case "max":
			files, ok = conf.Number(value)
			ok = ok && files > 0
		case "inactive":
			inactive, ok = conf.Duration(value)
		case "valid":
			valid, ok = conf.Duration(value)
		case "off":
			off, ok = true, p == "off"
		}
		if !ok {
			return nil, d.Errorf("invalid parameter \"%s\"", p)
		}
	}
	switch {
	case off:
		return nil, nil
	case files == 0:
		return nil, d.Errorf("\"%s\" must have the \"max\" parameter", d.Name)
	}
	return certs.NewCache((files+1)/2, max(inactive, time.Nanosecond), valid), nil // nginx counts certificates and keys
}

func sslCertificateCache(_ *compiler, l *level, d *conf.Directive) (err error) {
	sslSlot.edit(l).cache, err = certificateCache(d)
	return err
}

func (f *family) sslCertificateCache(_ *compiler, l *level, d *conf.Directive) (err error) {
	f.slot.edit(l).tls.cache, err = certificateCache(d)
	return err
}

func streamProxyCertificateCache(_ *compiler, l *level, d *conf.Directive) (err error) {
	streamProxySlot.edit(l).tls.cache, err = certificateCache(d)
	return err
}

// cachedPair is loadPair for names with variables. cache is nil if there is none.
func (e *Engine) cachedPair(cache *certs.Cache, cert, key, passwords string) (*certs.Loaded, error) {
	if cache == nil {
		cache = e.uncached
	}
	return cache.Load(cert, key, func() (pair tls.Certificate, encrypted bool, err error) {
		if pair, err = loadPair(cert, key, passwords, certPair{}); err != nil {
			return pair, false, err
		}
		text, err := certs.Read(key)
		return pair, err != nil || certs.Encrypted(text), nil
	})
}
