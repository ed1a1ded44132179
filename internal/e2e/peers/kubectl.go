package main

import (
	"os"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/attach"
	kubectlexec "k8s.io/kubectl/pkg/cmd/exec"
	kubectlget "k8s.io/kubectl/pkg/cmd/get"
	"k8s.io/kubectl/pkg/cmd/portforward"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
)

func kubectl() error {
	flags := genericclioptions.NewConfigFlags(true)
	root := &cobra.Command{Use: "kubectl", SilenceUsage: true, SilenceErrors: true}
	flags.AddFlags(root.PersistentFlags())
	factory := cmdutil.NewFactory(cmdutil.NewMatchVersionFlags(flags))
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	root.AddCommand(kubectlget.NewCmdGet("kubectl", factory, streams))
	root.AddCommand(kubectlexec.NewCmdExec(factory, streams), attach.NewCmdAttach(factory, streams), portforward.NewCmdPortForward(factory, streams))
	return root.Execute()
}
