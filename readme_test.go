package culvert_test

import (
	"os"
	"strings"
	"testing"
)

// The README's embedding example is the body of Example, which the compiler
// checks; this keeps the two from drifting apart.
func TestReadmeShowsTheCompiledExample(t *testing.T) {
	_, body, ok := strings.Cut(read(t, "example_test.go"), "func Example() {\n")
	if !ok {
		t.Fatal("example_test.go has no Example")
	}
	body, _, _ = strings.Cut(body, "\n}\n")
	_, block, ok := strings.Cut(read(t, "README.md"), "```go\nfunc main() {\n")
	if !ok {
		t.Fatal("README.md has no Go block that starts with func main")
	}
	block, _, _ = strings.Cut(block, "\n}\n```")
	if block != body {
		t.Errorf("README.md shows\n%s\nbut example_test.go compiles\n%s", block, body)
	}
}

// The larger example is a program of the examples module, shown as it is, in under
// 80 lines.
func TestReadmeShowsTheGateway(t *testing.T) {
	program := read(t, "examples/gateway/main.go")
	if !strings.Contains(read(t, "README.md"), "```go\n"+program+"```\n") {
		t.Error("README.md does not show examples/gateway/main.go as it is")
	}
	if lines := strings.Count(program, "\n"); lines >= 80 {
		t.Errorf("examples/gateway/main.go has %d lines", lines)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
