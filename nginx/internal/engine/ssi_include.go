package engine

import (
	"errors"
	"io"
	"net/http"
	"path"
	"strings"
)

// include writes the content of a subrequest, or sets a variable to it.
func (d *document) include(p ssiParams) error {
	target, err := d.includeTarget(p)
	if err != nil {
		return err
	}
	uri, args, ok := safePath(target)
	if !ok {
		return d.fail("unsafe URI \"" + target + "\" was detected")
	}
	var stub *ssiBlock
	if name, ok := p["stub"]; ok {
		if stub = d.x.ssiShared().stub(name); stub == nil {
			return d.fail("\"stub\"=\"" + name + "\" for \"include\" not found")
		}
	}
	if name, ok := p["set"]; ok {
		return d.includeInVariable(name, uri, args)
	}
	sub, err := d.x.subrequest(uri, args, d.w)
	if err != nil {
		return errCommand
	}
	sub.stub = stub
	return d.x.include(sub)
}

// includeTarget returns the URI of an include. A relative one belongs to the folder of the
// document. wait has no effect: subrequests run one after the other.
func (d *document) includeTarget(p ssiParams) (string, error) {
	uri, virtual := p["virtual"]
	file, isFile := p["file"]
	wait, waits := p["wait"]
	_, set := p["set"]
	_, stub := p["stub"]
	switch {
	case virtual && isFile:
		return "", d.fail("inclusion may be either virtual=\"" + uri + "\" or file=\"" + file + "\"")
	case !virtual && !isFile:
		return "", d.fail("no parameter in \"include\" SSI command")
	case set && stub:
		return "", d.fail("\"set\" and \"stub\" cannot be used together in \"include\" SSI command")
	case waits && !virtual:
		return "", d.fail("\"wait\" cannot be used with file=\"" + file + "\"")
	case waits && !strings.EqualFold(wait, "yes") && !strings.EqualFold(wait, "no"):
		return "", d.fail("invalid value \"" + wait + "\" in the \"wait\" parameter")
	case isFile:
		uri = file
	}
	target, err := d.evaluate(uri)
	if err == nil && !strings.HasPrefix(target, "/") {
		dir, _ := path.Split(d.x.URI)
		target = dir + target
	}
	return target, err
}

// stub returns the first block of a name; nil if there is none.
func (s *ssiShared) stub(name string) *ssiBlock {
	for _, b := range s.blocks {
		if b.name == name {
			return b
		}
	}
	return nil
}

// includeInVariable sets a variable to the content of a subrequest; one that fails leaves it
// empty.
func (d *document) includeInVariable(name, uri, args string) error {
	shared := d.x.ssiShared()
	if _, ok := shared.variables[strings.ToLower(name)]; !ok {
		shared.variables[strings.ToLower(name)] = ""
	}
	kept := &keptContent{}
	sub, err := d.x.subrequest(uri, args, kept)
	if err != nil {
		return errCommand
	}
	kept.sub = sub
	if err := d.x.include(sub); err != nil {
		return err
	}
	if sub.Status < http.StatusMultipleChoices && kept.Len() > 0 {
		return shared.setVariable(d.x, name, kept.String())
	}
	return nil
}

// keptContent keeps the content of a subrequest, up to subrequest_output_buffer_size of its location.
type keptContent struct {
	strings.Builder
	sub *exchange
}

var _ io.Writer = (*keptContent)(nil)

// Write implements io.Writer.
func (k *keptContent) Write(p []byte) (int, error) {
	if int64(k.Len()+len(p)) > ssiSlot.of(k.sub.level).kept {
		k.sub.logError("too big subrequest response")
		return 0, errors.New("too big subrequest response")
	}
	return k.Builder.Write(p)
}

// serveStub serves the block of stub as the content of a subrequest that has failed, or has none.
func (x *exchange) serveStub(w *subrequestWriter) {
	clear(w.header)
	x.Status, x.charset.decided, x.ssi.decided, x.errStatus = 0, false, false, 0
	w.header["Content-Type"] = x.main.Header["Content-Type"]
	x.filtered(x.level.phases.body, w, func(x *exchange, w http.ResponseWriter) int {
		_, _ = w.Write(x.stub.text)
		return 0
	})
}
