package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/culvert-go/culvert/internal/wiretest"
)

// gatewayProgram is the gateway example.
var gatewayProgram = built("gateway", "../../examples", "./gateway")

// systemd accepts the units as they are, but for the folder of their programs.
func TestUnits(t *testing.T) {
	gateway, err := gatewayProgram()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, program := range map[string]string{"gateway": gateway, "culvert-nginx": culvertNginx} {
		if err := os.Symlink(program, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	units, err := filepath.Glob("../../packaging/*.s*")
	if err != nil || len(units) != 3 {
		t.Fatalf("%v, %v", units, err)
	}
	args := []string{"verify", "--man=no"}
	for _, unit := range units {
		text, err := os.ReadFile(unit)
		if err != nil {
			t.Fatal(err)
		}
		copied := filepath.Join(dir, filepath.Base(unit))
		write(t, copied, bytes.ReplaceAll(text, []byte("/usr/local/bin/"), []byte(dir+"/")))
		args = append(args, copied)
	}
	out, err := exec.Command("systemd-analyze", args...).CombinedOutput()
	if err != nil || bytes.Contains(out, []byte(dir)) { // it names the file of a line that it does not know, and succeeds
		t.Errorf("%v\n%s", err, out)
	}
}

// The drop-in has each command of Debian's unit that runs nginx, with the program that it starts instead, and systemd
// accepts both together.
func TestDropIn(t *testing.T) {
	const debian = "/lib/systemd/system/nginx.service"
	unit, err := os.ReadFile(debian)
	if err != nil {
		t.Fatal(err)
	}
	dropIn, err := os.ReadFile("../../packaging/nginx-drop-in.conf")
	if err != nil {
		t.Fatal(err)
	}
	const program, options = "/usr/local/sbin/nginx", " -p /usr/share/nginx -c /etc/nginx/nginx.conf"
	got := strings.ReplaceAll(strings.ReplaceAll(string(dropIn), program, "/usr/sbin/nginx"), options, "")
	_, got, _ = strings.Cut(got, "[Service]\n")
	var want strings.Builder
	for _, command := range regexp.MustCompile(`(?m)^(Exec\w+=)/usr/sbin/nginx .*$`).FindAllSubmatch(unit, -1) {
		fmt.Fprintf(&want, "%s\n%s\n", command[1], command[0])
	}
	if got != want.String() || got == "" {
		t.Errorf("the drop-in has\n%swhere Debian's unit has\n%s", got, want.String())
	}

	dir := t.TempDir()
	if err := os.Symlink(culvertNginx, filepath.Join(dir, "nginx")); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "nginx.service"), unit)
	if err := os.Mkdir(filepath.Join(dir, "nginx.service.d"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "nginx.service.d", "culvert.conf"), bytes.ReplaceAll(dropIn, []byte(program), []byte(dir+"/nginx")))
	out, err := exec.Command("systemd-analyze", "verify", "--man=no", filepath.Join(dir, "nginx.service")).CombinedOutput()
	if err != nil || bytes.Contains(out, []byte(dir)) {
		t.Errorf("%v\n%s", err, out)
	}
}

// systemd opens the gateway's socket, and starts it for the first connection.
func TestSocketActivation(t *testing.T) {
	gateway, err := gatewayProgram()
	if err != nil {
		t.Fatal(err)
	}
	dir, addr := t.TempDir(), fmt.Sprintf("127.0.0.1:%d", freePort(t))
	writeFiles(t, dir, map[string]string{"cert.pem": authority.files["upstream.example.pem"], "key.pem": authority.files["upstream.example.key"]})
	var log wiretest.Log
	activator := exec.Command("systemd-socket-activate", "-l", addr, gateway)
	activator.Dir, activator.Stdout, activator.Stderr = dir, &log, &log
	if err := activator.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = activator.Process.Kill() // the gateway: the activator has become it
		_ = activator.Wait()
		if t.Failed() {
			t.Log(log.String())
		}
	})
	client := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{TLSClientConfig: anyCertificate()}}
	defer client.CloseIdleConnections()
	var page []byte
	waitFor(t, "the gateway's page", func() bool {
		resp, err := client.Get("https://" + addr + "/metrics")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		page, err = io.ReadAll(resp.Body)
		return err == nil
	})
	if !bytes.Contains(page, []byte("# HELP")) {
		t.Errorf("/metrics has\n%s", page)
	}
}

// What the Dockerfile puts into its image runs with nothing beside it, as a user without rights.
func TestImage(t *testing.T) {
	image := t.TempDir()
	runBuild(t, image)
	if err := os.Chmod(image, 0o755); err != nil {
		t.Fatal(err)
	}
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, n)
	}))
	defer target.Close()
	addr := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	writeFiles(t, image, map[string]string{"dev/stdout": "", "dev/stderr": "", "etc/nginx/nginx.conf": `
user www-data;
pid /run/nginx.pid;
error_log /var/log/nginx/error.log;
events {}
http {
  access_log /var/log/nginx/access.log;
  server {
    listen ` + addr + `;
    client_body_buffer_size 1k;
    location / { proxy_pass ` + target.URL + `; }
  }
}
`})
	for _, device := range []string{"stdout", "stderr"} { // of which a container engine makes pipes of the user's
		if err := os.Chmod(filepath.Join(image, "dev", device), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	var log wiretest.Log
	cmd := exec.Command("/culvert-nginx", dockerfileList(t, "CMD")...)
	cmd.Dir, cmd.Env, cmd.Stderr = "/", []string{}, &log
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: image, Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGQUIT)
		if err := cmd.Wait(); err != nil || t.Failed() {
			t.Errorf("%v\n%s", err, log.String())
		}
	})
	var got string
	waitFor(t, "the image's server", func() bool {
		resp, err := http.Post("http://"+addr+"/", "text/plain", strings.NewReader(strings.Repeat("x", 100_000)))
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		got = resp.Status + " " + string(body)
		return err == nil
	})
	if got != "200 OK 100000" {
		t.Errorf("a body of 100,000 bytes: %s", got)
	}
	waitFor(t, "a line in the log that is the container's", func() bool {
		text, err := os.ReadFile(filepath.Join(image, "dev", "stdout"))
		return err == nil && bytes.Contains(text, []byte(`"POST / HTTP/1.1" 200`))
	})
	http.DefaultClient.CloseIdleConnections()
}

// runBuild runs the Dockerfile's RUN lines, with the folder for /image.
func runBuild(t *testing.T, image string) {
	t.Helper()
	lines := regexp.MustCompile(`(?m)^RUN (.*)$`).FindAllStringSubmatch(dockerfile(t), -1)
	if len(lines) == 0 {
		t.Fatal("the Dockerfile runs nothing")
	}
	for _, line := range lines {
		build := exec.Command("sh", "-c", strings.ReplaceAll(line[1], "/image", image))
		build.Dir, build.Env = "../..", append(os.Environ(), "GOWORK=")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", line[1], err, out)
		}
	}
}

// dockerfileList returns the list of an instruction.
func dockerfileList(t *testing.T, instruction string) []string {
	t.Helper()
	_, list, ok := strings.Cut(dockerfile(t), "\n"+instruction+" [")
	list, _, closed := strings.Cut(list, "]")
	if !ok || !closed {
		t.Fatalf("the Dockerfile has no list of %s", instruction)
	}
	var values []string
	for value := range strings.SplitSeq(list, ",") {
		values = append(values, strings.Trim(value, ` "`))
	}
	return values
}

func dockerfile(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
