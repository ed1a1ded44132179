package conf_test

import (
	"errors"
	"fmt"

	"github.com/culvert-go/culvert/nginx/conf"
)

// A program that implements a few directives parses a configuration, and learns where it has one that it
// does not implement.
func ExampleParse() {
	text := map[string]string{
		"/etc/app/app.conf":    "worker_processes auto;\nhttp {\n  include server.conf;\n}\n",
		"/etc/app/server.conf": "server {\n  listen 8080;\n  xml_entities page.dtd;\n}\n",
	}
	parse := func() (*conf.Tree, error) {
		return conf.Parse(conf.Options{
			File:        "/etc/app/app.conf",
			ReadFile:    func(name string) ([]byte, error) { return []byte(text[name]), nil },
			Implemented: conf.Specs{"http": {}, "server": {Repeatable: true}, "listen": {Repeatable: true}},
		})
	}

	var wrong *conf.Error
	if _, err := parse(); errors.As(err, &wrong) {
		fmt.Println(wrong)
	}

	text["/etc/app/server.conf"] = "server {\n  listen 8080;\n}\n"
	tree, err := parse()
	if err != nil {
		panic(err)
	}
	for _, n := range tree.Notes {
		fmt.Println(n)
	}
	server := tree.Main[1].Block[0] // of http, whose include is replaced by what it includes
	fmt.Println(server.Name, server.Block[0].Name, server.Block[0].Args)
	// Output:
	// directive "xml_entities" is not supported by culvert yet (XML is not transformed) in /etc/app/server.conf:3
	// "worker_processes" is a no-op: culvert is one process in /etc/app/app.conf:1
	// "http" is implemented in /etc/app/app.conf:2
	// "include" is implemented in /etc/app/app.conf:3
	// "server" is implemented in /etc/app/server.conf:1
	// "listen" is implemented in /etc/app/server.conf:2
	// server listen [8080]
}
