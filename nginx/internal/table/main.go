// Command table writes the table of directives into a README, replacing the one that is there.
package main

import (
	"log"
	"os"
	"strings"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: table README.md")
	}
	text, err := os.ReadFile(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), conf.TableBegins)
	_, after, ends := strings.Cut(rest, conf.TableEnds)
	if !ok || !ends {
		log.Fatal("the README has no place for the table")
	}
	if err := os.WriteFile(os.Args[1], []byte(before+conf.TableBegins+engine.Directives().Table()+conf.TableEnds+after), 0o644); err != nil {
		log.Fatal(err)
	}
}
