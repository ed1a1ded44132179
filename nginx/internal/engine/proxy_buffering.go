package engine

import (
	"errors"
	"os"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/proxy"
)

// buffers are what is buffered of bodies. Responses are buffered where the configuration says "on": by default culvert
// streams them.
type buffers struct {
	response       bool
	streamed       bool   // "proxy_request_buffering off"
	responseMemory int64  // proxy_buffers
	responseDisk   int64  // proxy_max_temp_file_size
	responseDir    string // proxy_temp_path
}

// responseBuffers are the defaults of every family.
var responseBuffers = buffers{responseMemory: 8 * 4 << 10, responseDisk: 1 << 30}

func (f *family) requestBuffering(_ *compiler, l *level, d *conf.Directive) error {
	f.slot.edit(l).buffers.streamed = !d.Flag()
	return nil
}

// tempPath sets the directory of responses. Files in it have no names.
func (f *family) tempPath(c *compiler, l *level, d *conf.Directive) error {
	f.slot.edit(l).buffers.responseDir = c.path(d.Args[0])
	return nil
}

// buffers compiles "proxy_buffers number size".
func (f *family) buffers(_ *compiler, l *level, d *conf.Directive) error {
	n, ok := conf.Number(d.Args[0])
	size, sizeOK := conf.Size(d.Args[1])
	if !ok || !sizeOK || n == 0 || size == 0 {
		return d.Invalid()
	}
	if n < 2 {
		return d.Errorf("there must be at least 2 \"%s\"", d.Name)
	}
	f.slot.edit(l).buffers.responseMemory = int64(n) * size
	return nil
}

func (b *buffers) forResponse() (*proxy.Buffer, error) {
	if !b.response {
		return nil, nil
	}
	return bufferIn(b.responseDir, b.responseMemory, b.responseDisk)
}

// bufferIn creates the directory, as nginx does; "" is the system's.
func bufferIn(dir string, memory, disk int64) (*proxy.Buffer, error) {
	if dir != "" {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, errors.New("mkdir() \"" + dir + "\" failed (" + conf.Errno(err) + ")")
		}
	}
	if disk == 0 {
		dir = "" // which proxy.New would refuse
	}
	return &proxy.Buffer{Memory: memory, Disk: disk, Dir: dir}, nil
}
