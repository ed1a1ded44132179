package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// announce prints the address and what each rule does.
func (d *devProxy) announce(out io.Writer, address string) {
	fmt.Fprintf(out, "devproxy on %s\n", address)
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, r := range d.rules {
		to := r.Target
		if to == "" {
			to = "by router"
		}
		fmt.Fprintf(t, "  %s\t→ %s\t%s\n", strings.Join(r.Context, " "), to, strings.Join(r.features(), ", "))
	}
	if d.static != nil {
		fmt.Fprintf(t, "  everything else\t→ files\t\n")
	}
	t.Flush()
	fmt.Fprintln(out, "Ctrl-C ends it.")
}

// features lists what a rule does beside forwarding.
func (r *compiled) features() (list []string) {
	for _, f := range []struct {
		name string
		on   bool
	}{
		{"WebSockets", r.WS},
		{"changeOrigin", r.ChangeOrigin},
		{"xfwd", r.XFwd},
		{"autoRewrite", r.AutoRewrite},
		{"followRedirects", r.FollowRedirects.follow},
		{"any certificate", r.Secure != nil && !*r.Secure},
	} {
		if f.on {
			list = append(list, f.name)
		}
	}
	for _, p := range r.PathRewrite {
		list = append(list, fmt.Sprintf("%s becomes %q", p.key, p.value))
	}
	return list
}
