package nginx

import (
	"cmp"
	"errors"
	"slices"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine"
)

// Check reads and compiles a configuration and returns all errors that one reading finds, nil if New would return none: what of a
// configuration of nginx has to be changed is known at once. They are in the order of files and lines, those without a
// place last. A directive that is at fault is left out, behind an error of syntax nothing more of its
// file is read, and now and then one error follows from another. Logs are opened as by New, and no address is bound.
func Check(o Options) []error {
	var errs []error
	load := o.load(nil, nil)
	load.OnError = func(err error) { errs = append(errs, err) }
	if e, err := engine.Load(load); err == nil {
		e.Close()
	} else if len(errs) == 0 { // none of the configuration
		errs = append(errs, err)
	}
	sortByPlace(errs)
	return errs
}

// sortByPlace sorts errors by their files, in the order in which these are met first, and lines.
func sortByPlace(errs []error) {
	type place struct{ file, line int }
	files, places := []string{}, map[error]place{}
	for _, err := range errs {
		var at *conf.Error
		if !errors.As(err, &at) || at.File == "" {
			places[err] = place{file: len(errs)}
			continue
		}
		if !slices.Contains(files, at.File) {
			files = append(files, at.File)
		}
		places[err] = place{slices.Index(files, at.File), at.Line}
	}
	slices.SortStableFunc(errs, func(a, b error) int {
		return cmp.Or(places[a].file-places[b].file, places[a].line-places[b].line)
	})
}
