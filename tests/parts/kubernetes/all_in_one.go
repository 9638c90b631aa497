// All daemons of Kubernetes, kubectl and etcd, as one program: linking once is quicker than seven times.
// The name that it is called by chooses the part.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	kubeproxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

var parts = map[string]func() *cobra.Command{
	"kube-apiserver":          apiserver.NewAPIServerCommand,
	"kube-controller-manager": controllermanager.NewControllerManagerCommand,
	"kube-proxy":              kubeproxy.NewProxyCommand,
	"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	"kubelet":                 func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) },
}

func main() {
	called := filepath.Base(os.Args[0])
	if called == "etcd" {
		etcdmain.Main(os.Args)
		return
	}
	if called == "kubectl" {
		if failed := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); failed != nil {
			kubectlutil.CheckErr(failed)
		}
		return
	}
	part, known := parts[called]
	if !known {
		fmt.Fprintf(os.Stderr, "%s is no part of Kubernetes\n", called)
		os.Exit(2)
	}
	os.Exit(cli.Run(part()))
}
