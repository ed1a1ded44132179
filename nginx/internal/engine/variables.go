package engine

import (
	"strings"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
)

// declareVariables declares the configuration's variables: all names first, since each may be
// used in the others, above or below.
func (c *compiler) declareVariables(list []*conf.Directive) error {
	if err := c.declareCaptures(list); err != nil {
		return err
	}
	if err := c.declareSets(list); err != nil {
		return err
	}
	var fill []func() error
	for _, d := range list {
		declare, ok := map[string]func(*conf.Directive, string) (func() error, error){
			"geo": c.declareGeo, "map": c.declareMap, "split_clients": c.declareSplit,
		}[d.Name]
		if !ok {
			continue
		}
		last := d.Args[len(d.Args)-1]
		name, ok := strings.CutPrefix(last, "$")
		if !ok || name == "" {
			return d.Errorf("invalid variable name \"%s\"", last)
		}
		if vars.Builtin(strings.ToLower(name)) {
			return d.Errorf("the duplicate \"%s\" variable", name)
		}
		define, err := declare(d, strings.ToLower(name))
		if err != nil {
			return err
		}
		fill = append(fill, define)
	}
	for _, f := range fill {
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}
