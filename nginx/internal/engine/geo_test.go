package engine_test

import (
	"strings"
	"testing"
)

// A geo is evaluated once for each request, unless it is volatile.
func TestGeoIsEvaluatedOnce(t *testing.T) {
	const geo = "geo $arg_ip $%s { %s 192.0.2.1 first; 192.0.2.2 second; }\n"
	s := serve(t, map[string]string{"nginx.conf": "events {} http { access_log off;\n" +
		strings.NewReplacer("%s", "once").Replace(strings.Replace(geo, "%s 192", "192", 1)) +
		strings.NewReplacer("$%s", "$anew", "%s", "volatile;").Replace(geo) +
		"server { location / { set $a $once; set $b $anew; set $args ip=192.0.2.2; return 200 \"$a $b $once $anew\"; } } }"})
	equal(t, "values", s.get("/?ip=192.0.2.1").body, "first first first second")
}

// Of two blocks on a line it is not known which one is volatile.
func TestGeoVolatileOfTwo(t *testing.T) {
	_, err := load(t, map[string]string{"nginx.conf": "events {} http { geo $a { volatile; } geo $b { default x; } }"})
	if err == nil || !strings.Contains(err.Error(), "invalid number of the geo parameters") {
		t.Errorf("loaded: %v", err)
	}
}
