package engine

import (
	"math"
	"strconv"
	"strings"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
)

// defineSplit compiles "split_clients string $variable { share value; … }".
func defineSplit(c *compiler, d *conf.Directive, name string) func() error {
	s := new(vars.Split)
	c.scope.DeclareSplit(name, s)
	return func() error { return fillSplit(c, s, d) }
}

func fillSplit(c *compiler, s *vars.Split, d *conf.Directive) (err error) {
	if s.Source, err = c.value(d, d.Args[0]); err != nil {
		return err
	}
	sum := 0
	for _, row := range d.Block {
		if len(row.Args) != 1 {
			return row.Errorf("invalid number of parameters")
		}
		if row.Name == "*" {
			s.Parts = append(s.Parts, vars.Share{Value: row.Args[0]})
			continue
		}
		share, ok := percent(row.Name)
		if !ok || share == 0 {
			return row.Errorf("invalid percent value \"%s\"", row.Name)
		}
		if sum += share; sum > 10000 {
			return row.Errorf("percent total is greater than 100%%")
		}
		s.Parts = append(s.Parts, vars.Share{Below: uint32(uint64(sum) * math.MaxUint32 / 10000), Value: row.Args[0]})
	}
	return nil
}

// percent reads "12.34%" as hundredths.
func percent(s string) (int, bool) {
	text, ok := strings.CutSuffix(s, "%")
	whole, fraction, _ := strings.Cut(text, ".")
	n, err := strconv.ParseUint(whole+(fraction + "00")[:2], 10, 16)
	return int(n), ok && err == nil && len(fraction) <= 2
}
