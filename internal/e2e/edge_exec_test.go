package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// TestKubectlThroughTheEdge: kubectl exec, attach and port-forward through the real edge reach the
// real apiserver, over both of kubectl's protocols: the error that they print, that there is no
// kubelet, is the apiserver's own, the same as without the edge.
func TestKubectlThroughTheEdge(t *testing.T) {
	server := "https://" + startKubernetes(t)
	kubelet := freePort(t) // nothing listens there
	createPod(t, server, kubelet)
	edge := startEdge(t, server)
	for _, webSockets := range []string{"true", "false"} {
		for _, command := range [][]string{
			{"exec", "pod", "--", "true"},
			{"attach", "pod"},
			{"port-forward", "--address=127.0.0.1", "pod", fmt.Sprint(freePort(t), ":80")},
		} {
			direct, through := runRefused(t, server, webSockets, command), runRefused(t, edge, webSockets, command)
			if !strings.Contains(direct, fmt.Sprintf("127.0.0.1:%d: connect: connection refused", kubelet)) {
				t.Fatalf("kubectl %s without the edge: %s", command[0], direct)
			}
			if through != direct {
				t.Errorf("kubectl %s, WebSocket %s: %s\nwithout the edge: %s", command[0], webSockets, through, direct)
			}
		}
	}
}

// runRefused returns what kubectl says when it fails.
func runRefused(t *testing.T, server, webSockets string, command []string) string {
	t.Helper()
	_, address, _ := strings.Cut(server, "://")
	flags := []string{"--server", server, "--insecure-skip-tls-verify", "--token", adminToken, "--namespace", "shop"}
	cmd := kubectl(t, address, webSockets, append(flags, command...)...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	var exit *exec.ExitError
	if err := cmd.Run(); !errors.As(err, &exit) {
		t.Fatalf("kubectl %s: %v: %s", command[0], err, &said)
	}
	return said.String()
}

// createPod makes a pod that runs on a node without a kubelet.
func createPod(t *testing.T, server string, kubelet int) {
	t.Helper()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server, BearerToken: adminToken, TLSClientConfig: rest.TLSClientConfig{Insecure: true}})
	if err != nil {
		t.Fatal(err)
	}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx := t.Context()
	_, err = client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, metav1.CreateOptions{})
	check(err)
	node, err := client.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node0"}}, metav1.CreateOptions{})
	check(err)
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}}
	node.Status.DaemonEndpoints.KubeletEndpoint.Port = int32(kubelet)
	_, err = client.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{})
	check(err)
	containers := []corev1.Container{{Name: "main", Image: "none"}}
	pod, err := client.CoreV1().Pods("shop").Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pod"}, Spec: corev1.PodSpec{NodeName: "node0", Containers: containers}}, metav1.CreateOptions{})
	check(err)
	pod.Status.Phase = corev1.PodRunning
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	_, err = client.CoreV1().Pods("shop").UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	check(err)
}

// startEdge starts the edge example with TLS on loopback, and returns where it listens.
func startEdge(t *testing.T, server string) (address string) {
	t.Helper()
	program, err := edgeProgram()
	if err != nil {
		t.Fatal(err)
	}
	c := &edgeCluster{t: t, dir: t.TempDir()}
	for name, content := range certificates() {
		write(t, filepath.Join(c.dir, name), []byte(content))
	}
	listen, admin := fmt.Sprintf("127.0.0.1:%d", freePort(t)), fmt.Sprintf("127.0.0.1:%d", freePort(t))
	startKube(t, program, "-kubeconfig", c.kubeconfigFor("gateway", server), "-node", "node0", "-listen", listen, "-admin", admin,
		"-tls-cert", filepath.Join(c.dir, "first.pem"), "-tls-key", filepath.Join(c.dir, "first.key"))
	awaitOK(t, "http://"+admin+"/readyz")
	return "https://" + listen
}
