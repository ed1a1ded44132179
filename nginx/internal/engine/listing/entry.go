// Package listing writes the listing of a directory as nginx's autoindex module does: its order,
// its columns, its escapes.
package listing

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Entry is one line of a listing.
type Entry struct {
	Name string
	// Dir and File report its type; if neither is set it is something else, such as a pipe.
	Dir, File bool
	// Modified is when it was changed, in Unix seconds.
	Modified int64
	Size     int64
}

// batch is how many names are read at once: between two batches a disconnected client ends the
// reading, even of a very large directory.
const batch = 1024

// Read returns the entries of dir, in nginx's order: directories first, then by the bytes of the
// names. Names with a leading dot are hidden. Names without permission are left out, and unseen
// is called with each.
func Read(ctx context.Context, dir *os.File, unseen func(name string)) ([]Entry, error) {
	var entries []Entry
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		names, err := dir.Readdirnames(batch)
		for _, name := range names {
			if strings.HasPrefix(name, ".") {
				continue
			}
			e, err := entryOf(dir.Name(), name)
			switch {
			case err == nil:
				entries = append(entries, e)
			case errors.Is(err, fs.ErrPermission):
				unseen(filepath.Join(dir.Name(), name))
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(entries, compare)
	return entries, nil
}

// entryOf describes one name. Links are followed; one that leads nowhere is shown as itself. An
// error is one of permission, or the name was removed meanwhile, which makes nginx break off the
// whole response.
func entryOf(dir, name string) (Entry, error) {
	path := filepath.Join(dir, name)
	info, err := os.Stat(path)
	if err != nil && !errors.Is(err, fs.ErrPermission) {
		info, err = os.Lstat(path)
	}
	if err != nil {
		return Entry{}, err
	}
	return Entry{Name: name, Dir: info.IsDir(), File: info.Mode().IsRegular(), Modified: info.ModTime().Unix(), Size: info.Size()}, nil
}

func compare(a, b Entry) int {
	switch {
	case a.Dir && !b.Dir:
		return -1
	case b.Dir && !a.Dir:
		return 1
	}
	return cmp.Compare(a.Name, b.Name)
}

// kind returns the word for an entry's type in XML and JSON.
func (e Entry) kind() string {
	switch {
	case e.Dir:
		return "directory"
	case e.File:
		return "file"
	}
	return "other"
}
