package engine

import (
	"errors"
	"io/fs"
	"net/http"
	"os"
	"strings"

	"github.com/culvert-go/culvert/nginx/internal/engine/dav"
)

// copyOrMove serves COPY and MOVE.
func (x *exchange) copyOrMove() int {
	to, status := x.destination()
	if status != 0 {
		return status
	}
	overwrite, status := x.overwrites()
	if status == 0 {
		status = x.checkCopyDepth()
	}
	if status != 0 {
		return status
	}
	// A path that is not below the location would lead to a file that the location does not have.
	if rule := rootSlot.of(x.level); rule.alias && !rule.whole && !strings.HasPrefix(to, rule.prefix) {
		return x.invalidDestination()
	}
	source, target := withoutSlashes(davName(x, x.URI)), withoutSlashes(davName(x, to))
	if err := dav.Check(target); err != nil {
		return x.davError(err, "open", target, http.StatusNotFound)
	}
	collection := strings.HasSuffix(to, "/")
	switch {
	case source == target:
		return x.davFailed(http.StatusForbidden, "both URI \""+x.URI+"\" and \"Destination\" URI \""+x.destinationField()+"\" point to the same location")
	case collection && (isInside(source, target) || isInside(target, source)):
		return x.davFailed(http.StatusForbidden, x.couldNot())
	}
	there, err := os.Lstat(target)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		overwrite = false
	case err != nil:
		return x.davError(err, "lstat", target, http.StatusNotFound)
	case there.IsDir() && !collection:
		return x.davFailed(http.StatusConflict, x.couldNot())
	case !overwrite:
		return x.davFailed(http.StatusPreconditionFailed, "\""+target+"\" could not be created (17: File exists)")
	}
	return x.copyTo(source, target, overwrite)
}

// copyTo copies or moves a file or a folder.
func (x *exchange) copyTo(source, target string, overwrite bool) int {
	name := source
	if strings.HasSuffix(x.URI, "/") {
		name += "/" // a file has none
	}
	info, err := os.Lstat(name)
	if err != nil {
		return x.davError(err, "lstat", source, http.StatusNotFound)
	}
	status := http.StatusNoContent
	if info.IsDir() {
		if status = http.StatusCreated; !strings.HasSuffix(x.URI, "/") {
			return x.davFailed(http.StatusBadRequest, "\""+x.URI+"\" is collection")
		}
		if overwrite {
			if err := dav.Delete(target); err != nil {
				return x.davError(err, "unlink", target, http.StatusNotFound)
			}
		}
	}
	if x.HTTP.Method == "MOVE" {
		err = dav.Move(source, target, davSlot.of(x.level).access)
	} else {
		err = dav.Copy(source, target)
	}
	switch {
	case err == nil:
		return status
	case info.IsDir():
		return x.davError(err, "mkdir", target, http.StatusNotFound)
	}
	return x.davError(err, "open", target, http.StatusInternalServerError)
}

// withoutSlashes removes the slashes from a name that mean nothing.
func withoutSlashes(name string) string {
	for strings.Contains(name, "//") {
		name = strings.ReplaceAll(name, "//", "/")
	}
	return strings.TrimSuffix(name, "/")
}

// isInside reports whether a path is below a folder.
func isInside(name, dir string) bool {
	return strings.HasPrefix(name, strings.TrimSuffix(dir, "/")+"/")
}

func (x *exchange) destinationField() string { return x.HTTP.Header.Get("Destination") }

func (x *exchange) couldNot() string {
	verb := map[string]string{"COPY": "COPYed", "MOVE": "MOVEed"}[x.HTTP.Method]
	return "\"" + x.URI + "\" could not be " + verb + " to collection \"" + x.destinationField() + "\""
}

func (x *exchange) invalidDestination() int {
	return x.davFailed(http.StatusBadRequest, "client sent invalid \"Destination\" header: \""+x.destinationField()+"\"")
}

// destination returns the path that Destination names, on this server.
func (x *exchange) destination() (uri string, status int) {
	field := x.destinationField()
	if len(x.HTTP.Header["Destination"]) == 0 {
		return "", x.davFailed(http.StatusBadRequest, "client sent no \"Destination\" header")
	}
	target := field
	if !strings.HasPrefix(field, "/") {
		rest, ok := strings.CutPrefix(field, x.Scheme()+"://")
		slash := strings.IndexByte(rest, '/')
		if !ok || slash < 0 {
			return "", x.invalidDestination()
		}
		host, _, _ := strings.Cut(rest[:slash], ":")
		if strings.HasPrefix(rest, "[") {
			host, _, _ = strings.Cut(rest[:slash], "]")
			host += "]"
		}
		if !strings.EqualFold(host, x.Host) {
			return "", x.davFailed(http.StatusBadRequest, "\"Destination\" URI \""+field+"\" is handled by different repository than the source URI")
		}
		target = rest[slash:]
	}
	uri, _, ok := safePath(target)
	switch {
	case !ok:
		return "", x.invalidDestination()
	case strings.HasSuffix(x.URI, "/") != strings.HasSuffix(uri, "/"):
		return "", x.davFailed(http.StatusConflict, "both URI \""+x.URI+"\" and \"Destination\" URI \""+field+"\" should be either collections or non-collections")
	}
	return uri, 0
}

func (x *exchange) overwrites() (overwrite bool, status int) {
	lines := x.HTTP.Header["Overwrite"]
	if len(lines) == 0 {
		return true, 0
	}
	switch lines[0] {
	case "T", "t":
		return true, 0
	case "F", "f":
		return false, 0
	}
	return false, x.davFailed(http.StatusBadRequest, "client sent invalid \"Overwrite\" header: \""+lines[0]+"\"")
}

func (x *exchange) checkCopyDepth() int {
	switch depth := x.depth(); {
	case depth == "" || depth == depthInfinity, depth == "0" && x.HTTP.Method == "COPY":
		return 0
	case x.HTTP.Method == "COPY":
		return x.davFailed(http.StatusBadRequest, "\"Depth\" header must be 0 or infinity")
	}
	return x.davFailed(http.StatusBadRequest, "\"Depth\" header must be infinity")
}
