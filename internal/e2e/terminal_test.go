package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// terminalProgram is the terminal example.
var terminalProgram = built("terminal", "../../examples", "./terminal")

// startTerminal runs examples/terminal in front of a cluster and returns the page's URL.
func startTerminal(t *testing.T) string {
	t.Helper()
	program, err := terminalProgram()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "-listen", "127.0.0.1:0", "-server", "http://"+startCluster(t))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(strings.TrimSpace(line), "?pod=")
}

// shown waits until the terminal shows a text, which is given as a regular expression in
// JavaScript, and returns it.
func shown(pattern string, text *string) chromedp.Action {
	return chromedp.Poll(fmt.Sprintf(`(document.querySelector('#rows').innerText.match(/%s/) || [])[0]`, pattern), text, chromedp.WithPollingTimeout(20*time.Second))
}

// TestTerminalInChromium is the incident of the web terminal whose first frame never
// arrived, all of it: a browser, the example, culvert, the apiserver's handlers and the
// CRI's streaming code. The shell knows the terminal's size before its first prompt.
func TestTerminalInChromium(t *testing.T) {
	url := startTerminal(t)
	b := startBrowser(t)
	var prompt, hello, resized, state string
	var columns, rows, columnsAfter int
	b.run(t,
		chromedp.EmulateViewport(900, 500),
		chromedp.Navigate(url+"?pod=pod&command=shell"),
		shown(`\d+x\d+ \$`, &prompt),
		chromedp.Evaluate(`document.querySelector('#rows').children.length`, &rows),
		chromedp.Evaluate(`document.querySelector('#rows').children[0].textContent.length`, &columns),
		chromedp.SendKeys("#keys", "grüße\r"),
		shown(`grüße: not found`, &hello),
		chromedp.EmulateViewport(700, 500),
		shown(`not found\d+x\d+`, &resized),
		chromedp.Evaluate(`document.querySelector('#rows').children[0].textContent.length`, &columnsAfter),
		chromedp.SendKeys("#keys", "exit 7\r"),
		chromedp.Poll(`document.querySelector('#state').value.startsWith('ended') && document.querySelector('#state').value`, &state, chromedp.WithPollingTimeout(20*time.Second)),
	)
	if want := fmt.Sprintf("%dx%d $", columns, rows); prompt != want || columns < 80 {
		t.Errorf("the first prompt is %q, want %q", prompt, want)
	}
	if want := fmt.Sprintf("not found%dx%d", columnsAfter, rows); resized != want || columnsAfter >= columns {
		t.Errorf("after a resize the shell says %q, want %q, less than %d columns", resized, want, columns)
	}
	if state != "ended with exit code 7" {
		t.Errorf("the page says %q", state)
	}
	for _, line := range strings.Split(b.log(), "\n") {
		if strings.Contains(line, "error") {
			t.Errorf("console: %s", line)
		}
	}
}

// TestTerminalShowsRefusals: the page shows what the API server says of a pod that does not exist.
func TestTerminalShowsRefusals(t *testing.T) {
	url := startTerminal(t)
	b := startBrowser(t)
	var state string
	b.run(t,
		chromedp.Navigate(url+"?pod=none&command=shell"),
		chromedp.Poll(`/found|closed/.test(document.querySelector('#state').value) && document.querySelector('#state').value`, &state, chromedp.WithPollingTimeout(20*time.Second)),
	)
	if state != "404 page not found (404)" {
		t.Errorf("the page says %q", state)
	}
}

// TestTerminalScreen gives the terminal's screen what programs send, and looks at its
// rows. The replies are xterm's.
func TestTerminalScreen(t *testing.T) {
	url := startTerminal(t)
	b := startBrowser(t)
	b.run(t, chromedp.Navigate(url))
	for _, test := range []struct {
		name, sent string
		rows       []string // of a screen of 10x4, without what is blank at their ends
		cursor     [2]int   // column and row, from 0
	}{
		{"lines", "ab\r\ncd", []string{"ab", "cd", "", ""}, [2]int{2, 1}},
		{"wraps behind the last column", "0123456789", []string{"0123456789", "", "", ""}, [2]int{10, 0}},
		{"wraps", "0123456789x", []string{"0123456789", "x", "", ""}, [2]int{1, 1}},
		{"scrolls", "1\r\n2\r\n3\r\n4\r\n5", []string{"2", "3", "4", "5"}, [2]int{1, 3}},
		{"backspace and tab", "abc\b\bX\tY", []string{"aXc     Y", "", "", ""}, [2]int{9, 0}},
		{"moves", "\x1b[2;3Hx\x1b[Ay\x1b[3Dz\x1b[4;1H.", []string{" z y", "  x", "", "."}, [2]int{1, 3}},
		{"erases", "aaaaa\r\nbbbbb\r\nccccc\x1b[2;3H\x1b[K\x1b[1J", []string{"", "", "ccccc", ""}, [2]int{2, 1}},
		{"inserts and deletes", "abcdef\x1b[1;3H\x1b[2@\x1b[1;1H\x1b[P", []string{"b  cdef", "", "", ""}, [2]int{0, 0}},
		{"inserts and deletes rows", "1\r\n2\r\n3\r\n4\x1b[2;1H\x1b[L\x1b[4;1H\x1b[M", []string{"1", "", "2", ""}, [2]int{0, 3}},
		{"a region", "1\r\n2\r\n3\r\n4\x1b[2;3r\x1b[3;1H\n\n", []string{"1", "", "", "4"}, [2]int{0, 2}},
		{"the alternate screen", "before\x1b[?1049hfull\x1b[?1049l!", []string{"before!", "", "", ""}, [2]int{7, 0}},
		{"colours and titles show nothing", "\x1b]0;title\x07\x1b[1;31;48;5;200;38;2;1;2;3mred\x1b[0m\x1b(B", []string{"red", "", "", ""}, [2]int{3, 0}},
		{"wide and combining", "日本e\u0301x", []string{"日本e\u0301x", "", "", ""}, [2]int{6, 0}},
		{"lines drawn", "\x1b(0lqk\x1b(Bl", []string{"┌─┐l", "", "", ""}, [2]int{4, 0}},
		{"nonsense", "\x1b[999999999999;;;;HA\x1b[1;1H\x1b[-5Zok\x1b[?99999h\x1b[;m", []string{"ok", "", "", "A"}, [2]int{2, 0}},
		{"controls inside a sequence", "abc\x1b\x00[2;\r2Hx", []string{"abc", " x", "", ""}, [2]int{2, 1}},
	} {
		sent, err := json.Marshal(test.sent)
		if err != nil {
			t.Fatal(err)
		}
		var got struct {
			Rows []string
			X, Y int
		}
		b.run(t, chromedp.Evaluate(fmt.Sprintf(`import('/screen.js').then(({ Screen }) => {
			const s = new Screen(10, 4);
			s.write(%s);
			return { Rows: s.grid.map((row) => row.map((c) => c.text).join('').trimEnd()), X: s.x, Y: s.y };
		})`, sent), &got, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
		if fmt.Sprintf("%q", got.Rows) != fmt.Sprintf("%q", test.rows) || [2]int{got.X, got.Y} != test.cursor {
			t.Errorf("%s: %q, cursor %d %d; want %q, %v", test.name, got.Rows, got.X, got.Y, test.rows, test.cursor)
		}
	}
}
