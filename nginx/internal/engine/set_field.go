package engine

import (
	"time"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
)

// The functions of this file compile directives that set one field of a module's settings.

func setFlag[T any](s slot[T], field func(*T) *bool) compileFunc {
	return func(_ *compiler, l *level, d *conf.Directive) error {
		*field(s.edit(l)) = d.Flag()
		return nil
	}
}

func setText[T any](s slot[T], field func(*T) *string) compileFunc {
	return func(_ *compiler, l *level, d *conf.Directive) error {
		*field(s.edit(l)) = d.Args[0]
		return nil
	}
}

func setNumber[T any](s slot[T], field func(*T) *int) compileFunc {
	return func(_ *compiler, l *level, d *conf.Directive) (err error) {
		*field(s.edit(l)), err = d.Number()
		return err
	}
}

func setSize[T any](s slot[T], field func(*T) *int64) compileFunc {
	return func(_ *compiler, l *level, d *conf.Directive) (err error) {
		*field(s.edit(l)), err = d.Size()
		return err
	}
}

func setDuration[T any](s slot[T], field func(*T) *time.Duration) compileFunc {
	return func(_ *compiler, l *level, d *conf.Directive) (err error) {
		*field(s.edit(l)), err = d.Duration()
		return err
	}
}

// setValue compiles a text with variables.
func setValue[T any](s slot[T], field func(*T) *vars.Value) compileFunc {
	return func(c *compiler, l *level, d *conf.Directive) (err error) {
		*field(s.edit(l)), err = c.value(d, d.Args[0])
		return err
	}
}

// setWord compiles a word that stands for a value.
func setWord[T, V any](s slot[T], field func(*T) *V, words map[string]V) compileFunc {
	return func(_ *compiler, l *level, d *conf.Directive) error {
		v, ok := words[d.Args[0]]
		if !ok {
			return d.Errorf("invalid value \"%s\"", d.Args[0])
		}
		*field(s.edit(l)) = v
		return nil
	}
}
