// Command kube is the Kubernetes that the tests run, in one binary: the first argument says
// what it is to be.
//
//	kube etcd --data-dir …
//	kube kube-apiserver --etcd-servers …
//
// It is a module of its own, so that the tests that need none of it are built without.
package main

import (
	"fmt"
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "kube: etcd or kube-apiserver?")
		os.Exit(2)
	}
	name := os.Args[1]
	os.Args = append([]string{name}, os.Args[2:]...)
	switch name {
	case "etcd":
		etcdmain.Main(os.Args)
	case "kube-apiserver":
		os.Exit(cli.Run(app.NewAPIServerCommand()))
	default:
		fmt.Fprintf(os.Stderr, "kube: no %q in here\n", name)
		os.Exit(2)
	}
}
