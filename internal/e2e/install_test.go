package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

const library = "github.com/culvert-go/culvert"

// published are the modules that users install or import, with their folders: those that RELEASING.md tags.
var published = map[string]string{
	library:                       "../..",
	library + "/nginx":            "../../nginx",
	library + "/examples":         "../../examples",
	library + "/examples/listers": "../../examples/listers",
}

// On a machine that knows nothing of culvert, with its modules tagged as RELEASING.md says, go install builds the
// programs and go get the packages.
func TestInstall(t *testing.T) {
	version := releasedVersion(t)
	env := freshMachine(t, version)
	for _, program := range []string{"nginx/cmd/culvert-nginx", "examples/cachewhy", "examples/devproxy", "examples/edge",
		"examples/gateway", "examples/nginx", "examples/terminal"} {
		goCommand(t, t.TempDir(), env, "install", library+"/"+program+"@"+version)
	}
	for _, program := range []string{"culvert-nginx", "nginx"} {
		out, err := exec.Command(filepath.Join(envValue(env, "GOBIN"), program), "-v").CombinedOutput()
		if want := "nginx version: nginx/1.31.5 (culvert/" + strings.TrimPrefix(version, "v") + ")\n"; err != nil || string(out) != want {
			t.Errorf("%s -v: %v, %q, want %q", program, err, out, want)
		}
	}
	t.Run("go get", func(t *testing.T) {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "go.mod"), []byte("module example.com/gateway\n\ngo 1.26.0\n"))
		write(t, filepath.Join(dir, "main.go"), []byte(`package main

import (
	"`+library+`/nginx"
	"`+library+`/proxy"
)

func main() {
	_, _ = nginx.New(nginx.Options{})
	_, _ = proxy.New(proxy.Options{})
}
`))
		goCommand(t, dir, env, "get", library+"@"+version, library+"/nginx@"+version, library+"/examples/listers@"+version)
		goCommand(t, dir, env, "build", "-o", filepath.Join(dir, "gateway"), ".")
	})
}

// releasedVersion returns the version of the library that package nginx requires.
func releasedVersion(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../nginx/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	file, err := modfile.Parse("go.mod", text, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, required := range file.Require {
		if required.Mod.Path == library {
			return required.Mod.Version
		}
	}
	t.Fatal("module nginx does not require the library")
	return ""
}

// freshMachine returns an environment with an empty module cache, and with a module proxy that has this tree's
// modules as a version. What they depend on is copied from the user's module cache, or else downloaded.
func freshMachine(t *testing.T, version string) []string {
	t.Helper()
	var user struct{ GOMODCACHE, GOPROXY string }
	out, err := exec.Command("go", "env", "-json", "GOMODCACHE", "GOPROXY").Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out, &user); err != nil {
		t.Fatal(err)
	}
	proxy, home := t.TempDir(), t.TempDir()
	for path, dir := range published {
		publish(t, proxy, module.Version{Path: path, Version: version}, dir)
	}
	downloads := filepath.Join(user.GOMODCACHE, "cache", "download")
	return append(os.Environ(), "GOWORK=off", "GOENV=off", "GOFLAGS=-modcacherw -trimpath", "GOMODCACHE="+filepath.Join(home, "mod"),
		"GOBIN="+filepath.Join(home, "bin"), "GOSUMDB=off", // the checksums of others' modules are not what is tested
		"GOPROXY=file://"+filepath.ToSlash(proxy)+",file://"+filepath.ToSlash(downloads)+","+user.GOPROXY)
}

// publish puts a folder into a module proxy's folder, as a tag of the version would: without the modules below it.
func publish(t *testing.T, proxy string, version module.Version, dir string) {
	t.Helper()
	at := filepath.Join(proxy, filepath.FromSlash(version.Path), "@v")
	if err := os.MkdirAll(at, 0o755); err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(at, "list"), []byte(version.Version+"\n"))
	write(t, filepath.Join(at, version.Version+".info"), []byte(`{"Version":"`+version.Version+`","Time":"2026-01-02T03:04:05Z"}`))
	write(t, filepath.Join(at, version.Version+".mod"), mod)
	file, err := os.Create(filepath.Join(at, version.Version+".zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := zip.CreateFromDir(file, version, dir); err != nil {
		t.Fatal(err)
	}
}

func goCommand(t *testing.T, dir string, env []string, args ...string) {
	t.Helper()
	command := exec.Command("go", args...)
	command.Dir, command.Env = dir, env
	if out, err := command.CombinedOutput(); err != nil {
		t.Errorf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func envValue(env []string, name string) string {
	for _, entry := range env {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}
