// Command kube is the Kubernetes that the tests run, in one binary: the first argument says
// what it is to be.
//
//	kube etcd --data-dir …
//	kube kube-apiserver --etcd-servers …
//	kube kube-proxy --kubeconfig …
//
// It is a module of its own, so that the tests that need none of it are built without.
package main

import (
	"fmt"
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	kubeproxy "k8s.io/kubernetes/cmd/kube-proxy/app"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "kube: etcd, kube-apiserver or kube-proxy?")
		os.Exit(2)
	}
	name := os.Args[1]
	os.Args = append([]string{name}, os.Args[2:]...)
	switch name {
	case "etcd":
		etcdmain.Main(os.Args)
	case "kube-apiserver":
		os.Exit(cli.Run(apiserver.NewAPIServerCommand()))
	case "kube-proxy":
		os.Exit(cli.Run(kubeproxy.NewProxyCommand()))
	default:
		fmt.Fprintf(os.Stderr, "kube: no %q in here\n", name)
		os.Exit(2)
	}
}
