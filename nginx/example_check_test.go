package nginx_test

import (
	"fmt"

	"github.com/culvert-go/culvert/nginx"
)

func ExampleCheck() {
	read := func(string) ([]byte, error) {
		return []byte("error_log stderr;\nevents {}\nhttp {\n  gzip maybe;\n  server { location / { perl handler; } }\n}\n"), nil
	}
	for _, err := range nginx.Check(nginx.Options{File: "/etc/site.conf", ReadFile: read}) {
		fmt.Println(err)
	}
	// Output:
	// invalid value "maybe" in "gzip" directive, it must be "on" or "off" in /etc/site.conf:4
	// directive "perl" is not supported by culvert yet (there is no Perl) in /etc/site.conf:5
}
