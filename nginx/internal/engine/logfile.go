package engine

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/culvert-go/culvert/nginx/conf"
)

// logFiles are the open log files of an engine, each opened once.
type logFiles struct {
	stderr io.Writer
	files  []*logFile // complete when the configuration is loaded

	mu     sync.Mutex // held during reopen and close
	closed bool
}

// logFile is one log file, or a stream that is not ours to reopen.
type logFile struct {
	name string

	mu  sync.Mutex
	out io.Writer
}

// lines are line buffers for reuse.
var lines = sync.Pool{New: func() any { return new([]byte) }}

const logStderr = "stderr"

// open opens the file of an absolute name, or "stderr".
func (l *logFiles) open(name string) (*logFile, error) {
	for _, f := range l.files {
		if f.name == name {
			return f, nil
		}
	}
	f := &logFile{name: name, out: l.stderr}
	if name != logStderr {
		file, err := openLog(name)
		if err != nil {
			return nil, err
		}
		f.out = file
	}
	l.files = append(l.files, f)
	return f, nil
}

func openLog(name string) (*os.File, error) {
	file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open() \"%s\" failed (%s)", name, conf.Errno(err))
	}
	return file, nil
}

// reopen reopens every file, unless close has been called; one that fails is kept as it is.
func (l *logFiles) reopen() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	var first error
	for _, f := range l.files {
		if f.name == logStderr {
			continue
		}
		next, err := openLog(f.name)
		if err != nil {
			if first == nil {
				first = err
			}
			continue
		}
		f.replace(next)
	}
	return first
}

// own makes a user the owner of the files, who can open them again then.
func (l *logFiles) own(uid, gid int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var first error
	for _, f := range l.files {
		if file, ok := f.out.(*os.File); ok && f.name != logStderr {
			first = cmp.Or(first, file.Chown(uid, gid))
		}
	}
	return first
}

func (l *logFiles) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for _, f := range l.files {
		if f.name != logStderr {
			f.replace(io.Discard)
		}
	}
}

// replace installs another writer and closes the previous one.
func (f *logFile) replace(next io.Writer) {
	f.mu.Lock()
	before := f.out
	f.out = next
	f.mu.Unlock()
	if c, ok := before.(io.Closer); ok {
		c.Close()
	}
}

// log writes a line of an access log.
func (f *logFile) log(x logged, line *logFormat) {
	f.writeLine(func(b []byte) []byte { return line.Append(b, x.variables()) })
}

// writeLine writes a line with one call, so that lines of several processes are not mixed. A
// failure to write a log is not reported.
func (f *logFile) writeLine(line func([]byte) []byte) {
	compose(func(b []byte) []byte { return append(line(b), '\n') }, func(b []byte) {
		f.mu.Lock()
		_, _ = f.out.Write(b)
		f.mu.Unlock()
	})
}

// compose calls line and write with a buffer that is reused.
func compose(line func([]byte) []byte, write func([]byte)) {
	buf := lines.Get().(*[]byte)
	*buf = line((*buf)[:0])
	write(*buf)
	if cap(*buf) <= 4<<10 { // one huge line's buffer must not be kept for ever
		lines.Put(buf)
	}
}
