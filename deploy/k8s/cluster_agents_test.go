//go:build cluster

package k8s

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// defaultAgents is the agents' namespace of the manifests.
const defaultAgents = "pfl-forge-agents"

// TestClusterAgentsPolicy applies the policy of the agents' namespace, and asks for pods that
// break one rule each; another one than Pod Security has to refuse them.
func TestClusterAgentsPolicy(t *testing.T) {
	c := findCluster(t)
	namespace := c.agents(t, "pfl-forge-policy")
	if err := c.judge(t, namespace, agentPod()); err != nil {
		t.Fatalf("a pod as it should be: %v", err)
	}
	first := true
	for _, bad := range []struct {
		says  string
		spoil func(*core.Pod)
	}{
		{"automountServiceAccountToken", func(p *core.Pod) { p.Spec.AutomountServiceAccountToken = nil }},
		{"hostUsers", func(p *core.Pod) { p.Spec.HostUsers = nil }},
		{"enableServiceLinks", func(p *core.Pod) { p.Spec.EnableServiceLinks = nil }},
		{"volumes of Secrets", func(p *core.Pod) { mount(p, core.VolumeSource{Secret: &core.SecretVolumeSource{SecretName: "x"}}) }},
		{"volumes of Secrets", func(p *core.Pod) { mount(p, core.VolumeSource{Projected: &core.ProjectedVolumeSource{}}) }},
		{"variables from Secrets", func(p *core.Pod) {
			p.Spec.Containers[0].EnvFrom = []core.EnvFromSource{{SecretRef: &core.SecretEnvSource{LocalObjectReference: core.LocalObjectReference{Name: "x"}}}}
		}},
		{"variables from Secrets", func(p *core.Pod) {
			from := &core.EnvVarSource{SecretKeyRef: &core.SecretKeySelector{LocalObjectReference: core.LocalObjectReference{Name: "x"}, Key: "y"}}
			p.Spec.Containers[0].Env = []core.EnvVar{{Name: "X", ValueFrom: from}}
		}},
		{"limits", func(p *core.Pod) { delete(p.Spec.Containers[0].Resources.Limits, core.ResourceMemory) }},
		{"limits", func(p *core.Pod) {
			second := *p.Spec.Containers[0].DeepCopy()
			second.Name, second.Resources = "second", core.ResourceRequirements{}
			p.Spec.InitContainers = []core.Container{second}
		}},
		{"readOnlyRootFilesystem", func(p *core.Pod) { p.Spec.Containers[0].SecurityContext.ReadOnlyRootFilesystem = nil }},
		{"digest", func(p *core.Pod) { p.Spec.Containers[0].Image = "registry.example.com:5000/agent" }},
		{"digest", func(p *core.Pod) { p.Spec.Containers[0].Image = "agent:latest" }},
		{"activeDeadlineSeconds", func(p *core.Pod) { p.Spec.ActiveDeadlineSeconds = nil }},
	} {
		pod := agentPod()
		bad.spoil(pod)
		if first { // the API server takes up a new policy after a moment
			first = false
			wait.Until(t, "the policy holds", func() bool { return c.judge(t, namespace, pod) != nil })
		}
		err := c.judge(t, namespace, pod)
		if err == nil || !strings.Contains(err.Error(), "pfl-forge-agents") || !strings.Contains(err.Error(), bad.says) {
			t.Errorf("%s: %v", bad.says, err)
		}
		if err := c.judge(t, "default", pod); err != nil {
			t.Errorf("%s: it is refused elsewhere, too: %v", bad.says, err)
		}
	}
	for _, image := range []string{"agent:v1", "registry.example.com:5000/agent:v1", "agent@sha256:" + strings.Repeat("0", 64)} {
		pod := agentPod()
		pod.Spec.Containers[0].Image = image
		if err := c.judge(t, namespace, pod); err != nil {
			t.Errorf("%s: %v", image, err)
		}
	}
}

// dropIPv6 takes blocks of IPv6 addresses out of the egress rules of a policy where the cluster
// has none: what enforces policies there may refuse them, and with them all policies.
func (c *cluster) dropIPv6(t *testing.T, u *unstructured.Unstructured) {
	t.Helper()
	api, err := c.client.CoreV1().Services("default").Get(wait.Context(t), "kubernetes", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(api.Spec.ClusterIPs, func(ip string) bool { return strings.Contains(ip, ":") }) {
		return
	}
	rules, found, err := unstructured.NestedSlice(u.Object, "spec", "egress")
	if err != nil || !found {
		return
	}
	for _, rule := range rules {
		r := rule.(map[string]any) //nolint:forcetypeassert // it is rendered
		peers, _, err := unstructured.NestedSlice(r, "to")
		if err != nil {
			t.Fatal(err)
		}
		peers = slices.DeleteFunc(peers, func(peer any) bool {
			cidr, _, _ := unstructured.NestedString(peer.(map[string]any), "ipBlock", "cidr") //nolint:forcetypeassert // it is rendered
			return strings.Contains(cidr, ":")
		})
		if err := unstructured.SetNestedSlice(r, peers, "to"); err != nil {
			t.Fatal(err)
		}
	}
	if err := unstructured.SetNestedSlice(u.Object, rules, "spec", "egress"); err != nil {
		t.Fatal(err)
	}
}

// agents applies the overlay of the agents' namespace, in which the services of
// an installation make pods, under a name of that installation, and returns it.
// It goes when the test ends; what the overlay has outside of it is shared.
func (c *cluster) agents(t *testing.T, installation string) (namespace string) {
	t.Helper()
	namespace = installation + "-agents"
	c.isFree(t, namespace)
	t.Cleanup(func() { c.removeNamespace(t, namespace) })
	for _, u := range build(t, "overlays/agents").objects {
		switch u.GetKind() {
		case "NetworkPolicy":
			c.dropIPv6(t, u)
		case "Namespace":
			u.SetName(namespace)
		case "RoleBinding":
			subjects, _, err := unstructured.NestedSlice(u.Object, "subjects")
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range subjects {
				s.(map[string]any)["namespace"] = installation //nolint:forcetypeassert // it is rendered
			}
			if err := unstructured.SetNestedSlice(u.Object, subjects, "subjects"); err != nil {
				t.Fatal(err)
			}
		}
		if u.GetNamespace() != "" {
			u.SetNamespace(namespace)
		} else if u.GetKind() != "Namespace" {
			share(u)
		}
		if err := c.apply(wait.Context(t), u); err != nil {
			t.Fatalf("%s %s: %v", u.GetKind(), u.GetName(), err)
		}
	}
	c.awaitAccount(t, namespace)
	return namespace
}

// isFree ends the test if there is a namespace of that name.
func (c *cluster) isFree(t *testing.T, namespace string) {
	t.Helper()
	if _, err := c.client.CoreV1().Namespaces().Get(wait.Context(t), namespace, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Fatalf("there is a namespace %s already (%v): it is left alone; if an earlier test has left it, kubectl delete namespace %s", namespace, err, namespace)
	}
}

// awaitAccount waits for the account of a new namespace without which it takes no pods.
func (c *cluster) awaitAccount(t *testing.T, namespace string) {
	t.Helper()
	wait.Until(t, "pods have an account", func() bool {
		_, err := c.client.CoreV1().ServiceAccounts(namespace).Get(wait.Context(t), "default", metav1.GetOptions{})
		return err == nil
	})
}

// commandTemplate returns the template of components/pods for an agents' namespace, with
// requests of which many fit on one node, an agent CLI, and the label of an installation.
func commandTemplate(t *testing.T, namespace, installation string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("components", "pods", templateKey))
	if err != nil {
		t.Fatal(err)
	}
	changed := string(text)
	claude := fmt.Sprintf("\n  volumes:\n    - {name: claude, image: {reference: %q, pullPolicy: Never}}\n", claudeImage)
	for from, to := range map[string]string{
		"requests: {cpu: 250m, memory: 512Mi, ephemeral-storage: 256Mi}": "requests: {cpu: 5m, memory: 16Mi, ephemeral-storage: 1Mi}",
		"namespace: " + defaultAgents:                                    "namespace: " + namespace,
		"  labels:\n":                                                    "  labels:\n    " + installationLabel + ": " + installation + "\n",
		"volumeMounts:\n":                                                "volumeMounts:\n        - {name: claude, mountPath: /opt/claude, readOnly: true}\n",
		"\n  volumes:\n":                                                 claude,
	} {
		if !strings.Contains(changed, from) {
			t.Fatalf("%s has no %q", templateKey, from)
		}
		changed = strings.Replace(changed, from, to, 1)
	}
	return changed
}

// agentPod returns a pod that the policy lets through.
func agentPod() *core.Pod {
	pod := restrictedPod("agent", nil, "wait")
	yes, no, deadline := true, false, int64(3600)
	pod.Spec.HostUsers, pod.Spec.EnableServiceLinks, pod.Spec.ActiveDeadlineSeconds = &no, &no, &deadline
	limits := core.ResourceList{
		core.ResourceCPU: resource.MustParse("1"), core.ResourceMemory: resource.MustParse("256Mi"), core.ResourceEphemeralStorage: resource.MustParse("256Mi"),
	}
	pod.Spec.Containers[0].Resources.Limits = limits
	pod.Spec.Containers[0].SecurityContext.ReadOnlyRootFilesystem = &yes
	return pod
}

func mount(p *core.Pod, source core.VolumeSource) {
	p.Spec.Volumes = []core.Volume{{Name: "x", VolumeSource: source}}
	p.Spec.Containers[0].VolumeMounts = []core.VolumeMount{{Name: "x", MountPath: "/x"}}
}

// remove deletes an object.
func (c *cluster) remove(t *testing.T, u *unstructured.Unstructured) {
	t.Helper()
	r, err := c.resource(u)
	if err == nil {
		err = r.Delete(wait.Context(t), u.GetName(), metav1.DeleteOptions{})
	}
	if err != nil && !apierrors.IsNotFound(err) {
		t.Error(err)
	}
}
