package certs_test

import (
	"crypto/tls"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/nginx/internal/engine/certs"
)

// files are a certificate and a key whose text is the same.
type files struct {
	t   *testing.T
	dir string
}

func (f files) write(name, text string) {
	f.t.Helper()
	path := filepath.Join(f.dir, name)
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		f.t.Fatal(err)
	}
}

// load returns the text of a file by way of a cache, or the error.
func (f files) load(c *certs.Cache, name string, encrypted bool) string {
	path := filepath.Join(f.dir, name)
	pair, err := c.Load(path, path, func() (tls.Certificate, bool, error) {
		text, err := os.ReadFile(path)
		return tls.Certificate{Certificate: [][]byte{text}}, encrypted, err
	})
	if errors.Is(err, os.ErrNotExist) {
		return "gone"
	}
	if err != nil {
		return err.Error()
	}
	return string(pair.Certificate.Certificate[0])
}

func (f files) expect(c *certs.Cache, name, want string) {
	f.t.Helper()
	if got := f.load(c, name, false); got != want {
		f.t.Errorf("%s: %s, want %s", name, got, want)
	}
}

func TestCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := files{t, t.TempDir()}
		for _, name := range []string{"1", "2", "3"} {
			f.write(name, name)
		}
		c := certs.NewCache(2, 0, time.Minute)
		f.expect(c, "1", "1")
		f.write("1", "new")
		f.expect(c, "1", "1")
		time.Sleep(time.Second)
		f.expect(c, "2", "2")
		f.expect(c, "3", "3") // which takes the place of 1
		f.write("2", "new")
		time.Sleep(time.Second)
		f.expect(c, "2", "2")
		f.expect(c, "1", "new") // in place of 3
		time.Sleep(2 * time.Minute)
		f.expect(c, "2", "new")
		os.Remove(filepath.Join(f.dir, "2"))
		f.expect(c, "2", "new")
		time.Sleep(2 * time.Minute)
		f.expect(c, "2", "gone")

		c = certs.NewCache(2, time.Second, time.Hour)
		f.expect(c, "3", "3")
		f.write("3", "new")
		f.expect(c, "3", "3")
		time.Sleep(2 * time.Second)
		f.expect(c, "3", "new")
	})
}

// Without a time of validity, each use looks whether the files have changed. Encrypted keys are never kept.
func TestCacheOff(t *testing.T) {
	f := files{t, t.TempDir()}
	f.write("1", "1")
	c := certs.NewCache(2, 0, 0)
	f.expect(c, "1", "1")
	f.write("1", "new")
	f.expect(c, "1", "new")
	os.Remove(filepath.Join(f.dir, "1"))
	f.expect(c, "1", "gone")

	c = certs.NewCache(2, 0, time.Hour)
	f.write("1", "1")
	f.load(c, "1", true)
	f.write("1", "new")
	f.expect(c, "1", "new")
}

// While the files of one certificate are looked at, which a file system may hold, others are used.
func TestCacheWaitsUnlocked(t *testing.T) {
	f := files{t, t.TempDir()}
	f.write("slow", "slow")
	f.write("fast", "fast")
	c := certs.NewCache(2, 0, 0)
	f.expect(c, "slow", "slow")
	looking, release := make(chan struct{}), make(chan struct{})
	c.SetStat(func(name string) (os.FileInfo, error) {
		if filepath.Base(name) == "slow" {
			looking <- struct{}{}
			<-release
		}
		return os.Stat(name)
	})
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.expect(c, "slow", "slow")
	}()
	<-looking
	f.expect(c, "fast", "fast")
	close(release)
	<-looking // its key
	<-done
}
