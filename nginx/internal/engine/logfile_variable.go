package engine

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
)

// variableLog is an access log with variables in its name, opened for each line
// (ngx_http_log_script_write).
type variableLog struct {
	name   vars.Value
	folder string // what is before the first variable, up to its last slash
}

// newVariableLog compiles the first argument of d.
func newVariableLog(c *compiler, d *conf.Directive) (*variableLog, error) {
	text := absoluteText(c.prefix, d.Args[0])
	name, err := c.value(d, text)
	if err != nil {
		return nil, err
	}
	literal := text[:strings.IndexByte(text, '$')]
	return &variableLog{name, literal[:strings.LastIndexByte(literal, '/')+1]}, nil
}

// log writes a line of an access log, unless the folder that is served is missing: otherwise
// requests for unknown hosts would create files.
func (v *variableLog) log(x logged, line *logFormat) {
	if request, ok := x.(*exchange); ok && !rootExists(request) {
		return
	}
	name := v.name.String(x.variables())
	if !v.holds(name) {
		x.logAt(levelCrit, "access log \""+name+"\" is outside of \""+v.folder+"\" while logging request", "")
		return
	}
	file, err := openLog(name)
	if err != nil {
		x.logAt(levelCrit, err.Error()+" while logging request", "")
		return
	}
	defer file.Close()
	(&logFile{out: file}).log(x, line)
}

// holds reports whether a name is in the folder. nginx does not check this, so that a variable
// that clients choose can lead anywhere there.
func (v *variableLog) holds(name string) bool {
	inside := strings.TrimLeft(name[len(v.folder):], "/")
	return inside == "" || filepath.IsLocal(inside)
}

// rootExists reports whether the root of x's location is a folder. If it is not, it logs that.
func rootExists(x *exchange) bool {
	if x.rootTested {
		return true
	}
	root := documentRoot(x)
	info, err := os.Stat(root)
	if err == nil && !info.IsDir() {
		err = syscall.ENOTDIR
	}
	if err != nil {
		x.logError("testing \"" + root + "\" existence failed (" + conf.Errno(err) + ") while logging request")
	}
	return err == nil
}
