//go:build cluster

package k8s

import (
	"slices"
	"testing"

	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pfl-forge/pfl-forge/internal/wait"
)

const (
	// metadata is the address at which clouds give credentials of their nodes to who asks.
	metadata = "169.254.169.254:80"
	// public is a public address, of those that no one has: they are for documentation.
	public = "203.0.113.7:443"
)

// beyond puts both addresses onto the node, where they can be reached unless a policy is
// against it, until the test ends: a test has no cloud, and may have no way to the internet.
func (in *installation) beyond(t *testing.T) {
	t.Helper()
	namespace := in.namespace + "-node"
	in.cluster.namespace(t, namespace, map[string]string{"pod-security.kubernetes.io/enforce": "privileged"})
	in.awaitAccount(t, namespace)
	root, no, soon := int64(0), false, int64(5)
	pod := restrictedPod("beyond", nil, "stand", metadata, public)
	pod.Spec.HostNetwork, pod.Spec.TerminationGracePeriodSeconds = true, &soon
	pod.Spec.SecurityContext.RunAsUser, pod.Spec.SecurityContext.RunAsNonRoot = &root, &no
	pod.Spec.Containers[0].SecurityContext.Capabilities.Add = []core.Capability{"NET_ADMIN", "NET_BIND_SERVICE"}
	pods := in.client.CoreV1().Pods(namespace)
	if _, err := pods.Create(wait.Context(t), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // by its own word, which takes the addresses away: the namespace ends it at once
		if err := pods.Delete(wait.Context(t), pod.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
		wait.Until(t, "the addresses are gone", func() bool {
			list, err := pods.List(wait.Context(t), metav1.ListOptions{})
			return err == nil && !slices.ContainsFunc(list.Items, func(p core.Pod) bool { return p.Name == pod.Name })
		})
	})
}
