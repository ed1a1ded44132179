package engine_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDisableSymlinks(t *testing.T) {
	s := serve(t, with(server(`root real;
		location /on/ { disable_symlinks on from=$document_root; }
		location /owners/ { disable_symlinks if_not_owner from=$document_root; }
		location /try/ { disable_symlinks on from=$document_root; try_files $uri $uri.html =404; }
		location /if/ { disable_symlinks on from=$document_root; if (-f $request_filename) { return 204; } return 404; }
		location /flv/ { disable_symlinks on from=$document_root; flv; }
		location /zip/ { disable_symlinks on from=$document_root; gzip_static always; }
		location /from { location /from/ { disable_symlinks on from=$document_root; alias links/; } }`),
		"real/f", "text", "real/on/dir/index.html", "", "real/owners/x", "", "real/try/own.html", "tried", "real/if/f", "", "real/flv/f", "", "real/zip/f", ""))
	at := func(name string) string { return filepath.Join(s.dir, name) }
	faults := []error{os.Symlink("real", at("links")), os.Symlink("../../f", at("real/on/dir2")), os.Symlink("../f", at("real/on/dir/index.htm"))}
	for _, dir := range []string{"on", "owners", "try", "if", "flv", "zip"} {
		faults = append(faults, os.Symlink("../f", at("real/"+dir+"/own")), os.Symlink("../f", at("real/"+dir+"/others")), os.Lchown(at("real/"+dir+"/others"), 12345, 12345))
	}
	faults = append(faults, os.Symlink("../f", at("real/zip/own.gz")))
	if err := errors.Join(faults...); err != nil {
		t.Fatal(err)
	}
	for target, want := range map[string]int{
		"/f": 200, "/on/own": 403, "/on/others": 403, "/on/dir/": 200, "/owners/own": 200, "/owners/others": 403,
		"/try/own": 200, "/try/others": 404, "/if/f": 204, "/if/own": 404, "/flv/f": 200, "/flv/own": 403, "/zip/own": 403, "/from/f": 200, "/from/on/own": 403,
	} {
		equal(t, target, s.get(target).StatusCode, want)
	}
	equal(t, "the next file", s.get("/try/own").body, "tried")
	for text, want := range map[string]string{
		"maybe":               `invalid parameter "maybe" in `,
		"from=/x":             `"disable_symlinks" must have "off", "on" or "if_not_owner" parameter in `,
		"on on":               `duplicate parameters "on on" in `,
		"off from=/x":         `"from=" cannot be used with "off" parameter in `,
		"on from=$no_such_x ": `unknown "no_such_x" variable in `,
	} {
		if _, err := load(t, server("disable_symlinks "+text+";")); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
