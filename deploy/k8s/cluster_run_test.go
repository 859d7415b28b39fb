//go:build cluster

package k8s

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/pfl-forge/pfl-forge/agent/pods"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// TestCluster installs pfl-forge on a real cluster, has it work, and takes away from it
// what a cluster takes away: replicas, pods, NATS, keys, the node. Everything is merged, once.
func TestCluster(t *testing.T) {
	c := findCluster(t)
	version := c.images(t)
	beside(t, 19)
	in := newInstallation(t, c, "pfl-forge-test", version)
	in.setCredentials(t, "first")

	began := time.Now()
	in.write(t, "overlays/single-node", "", in.shop(t)+in.gateway(t))
	want := []string{"analyzer", "gateway", "implementer", "nats", "reflector", "reviewer", "runner"}
	in.ready(t, "", len(want))
	figure(t, "all services ready %s after it was applied", time.Since(began).Round(time.Second))
	in.neverRestarted(t, want)
	in.memory(t, "at rest")
	in.setPasswords(t, "first")

	many := manyIntents(t, 50)
	in.submit(t, "first", many)
	in.merged(t)
	in.memory(t, fmt.Sprintf("after %d intents", many))
	in.outside(t)
	in.claude(t)
	in.merged(t)
	in.measured(t)
	in.counted(t)
	in.traced(t)

	in.longCall(t, func() { // which takes its time: here is what needs no implementer
		t.Run("network", func(t *testing.T) { in.paths(t) })
		t.Run("restricted", func(t *testing.T) { in.refusesPrivileges(t) })
		t.Run("console", func(t *testing.T) { in.console(t) })
	})
	in.merged(t)

	in.scale(t, 3)
	in.submit(t, "scaled", 8)
	in.ready(t, "implementer", 3)
	for _, service := range []string{"implementer", "runner", "gateway", "nats"} {
		in.kill(t, service)
	}
	in.request(t, "meanwhile", 4)
	in.merged(t)

	in.rotate(t, "implementer")
	in.submit(t, "rotated", 4)
	in.changeCredentials(t, "second")

	in.scale(t, 1) // a second one could not go before the first is back, and here is no other node
	in.ready(t, "implementer", 1)
	in.submit(t, "drained", 4)
	in.drain(t, want)
	in.merged(t)
	in.ranInPods(t, "analyzer", "implementer", "reviewer")
	in.measured(t)
}

// claude has the real Claude Code CLI plan, make and review a change in pods, with a
// scripted model in another namespace. The agent looks around where it runs.
func (in *installation) claude(t *testing.T) {
	t.Helper()
	ctx, began := wait.Context(t), time.Now()
	gitPod, err := in.client.CoreV1().Pods(in.git).Get(ctx, "git-0", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	nats, implementer := in.pods(t, "nats")[0].Status.PodIP, in.pods(t, "implementer")[0].Status.PodIP
	walls := []string{in.apiServer(t), nats + ":4222", gitPod.Status.PodIP + ":8080", implementer + ":8080"}
	in.model(t, hold(), walls...)
	in.ask(t, "the report")
	report := in.file(t, "report.txt", func(string) bool { return true })
	figure(t, "a change by Claude Code, from its intent to its merge: %s", time.Since(began).Round(time.Second))
	t.Log(report)
	if !strings.HasPrefix(report, "forge-implementer-") || strings.Count(report, "No such file or directory") != 2 {
		t.Error("the agent ran elsewhere than in a pod of its own, or sees Secrets")
	}
	for _, wall := range walls {
		if !strings.Contains(report, wall+" blocked\n") {
			t.Errorf("the agent reaches %s", wall)
		}
	}
}

// model starts the scripted model. It holds the call of the long report at
// least for a while; the agent of the other report tries to reach the walls.
func (in *installation) model(t *testing.T, hold time.Duration, walls ...string) {
	t.Helper()
	pod := restrictedPod("model", map[string]string{"app": "model"}, append([]string{"model", hold.String()}, walls...)...)
	pod.Spec.Containers[0].Env = []core.EnvVar{{Name: "KEY", Value: in.key}}
	if _, err := in.client.CoreV1().Pods(in.git).Create(wait.Context(t), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// ranInPods looks for pods that the services had commands run in, of which none is left.
func (in *installation) ranInPods(t *testing.T, services ...string) {
	t.Helper()
	events, err := in.client.CoreV1().Events(in.agents).List(wait.Context(t), metav1.ListOptions{FieldSelector: "reason=Started"})
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, e := range events.Items {
		if parts := strings.Split(e.InvolvedObject.Name, "-"); len(parts) > 2 && parts[0] == "forge" {
			count[parts[1]]++
		}
	}
	t.Logf("pods of commands: %v", count)
	if got := slices.Sorted(maps.Keys(count)); !slices.Equal(got, services) {
		t.Errorf("pods were made by %v, want %v", got, services)
	}
	wait.Until(t, "no pod of a command is left", func() bool {
		list, err := in.client.CoreV1().Pods(in.agents).List(wait.Context(t), metav1.ListOptions{})
		return err == nil && len(list.Items) == 0
	})
}

// TestClusterDryRun has the API server judge every overlay, defaults, validation and Pod Security
// included, and store nothing. Kinds that it does not know are not judged.
func TestClusterDryRun(t *testing.T) {
	c := findCluster(t)
	in := &installation{cluster: c, namespace: "pfl-forge-dry", version: c.images(t)}
	c.namespace(t, in.namespace, nil)
	for _, dir := range overlays(t) {
		m, unknown := build(t, in.overlay(t, dir, "", "")), map[string]int{}
		for _, u := range m.objects {
			if _, err := in.resource(u); err != nil {
				unknown[u.GetKind()]++
				continue
			}
			if err := in.apply(wait.Context(t), u, metav1.DryRunAll); err != nil {
				t.Errorf("%s: %s %s: %v", dir, u.GetKind(), u.GetName(), err)
			}
		}
		t.Logf("%s: %d objects, unknown to this cluster: %v", dir, len(m.objects), unknown)
	}
}

// neverRestarted looks for containers that ended, however shortly, since they were made.
func (in *installation) neverRestarted(t *testing.T, services []string) {
	t.Helper()
	seen := map[string]bool{}
	for _, p := range in.pods(t, "") {
		seen[p.Labels["app.kubernetes.io/name"]] = true
		for _, s := range p.Status.ContainerStatuses {
			if s.RestartCount > 0 {
				t.Errorf("%s was restarted %d times", p.Name, s.RestartCount)
			}
		}
	}
	if got := slices.Sorted(maps.Keys(seen)); !slices.Equal(got, services) {
		t.Errorf("there are %v, want %v", got, services)
	}
}

// run runs the program of internal/testpod in a pod to its end, and returns its output.
func (in *installation) run(t *testing.T, namespace, name string, labels map[string]string, args ...string) string {
	t.Helper()
	optional := true
	pod := restrictedPod(name, labels, args...)
	if namespace == in.agents {
		pod = agentPod()
		pod.Name, pod.Labels, pod.Spec.Containers[0].Args = name, labels, args
		return in.ended(t, namespace, pod)
	}
	pod.Spec.Containers[0].Env = []core.EnvVar{{Name: "FORGE_SERVER", Value: "tls://nats." + in.namespace + ".svc:4222"}, {Name: "SYSTEM", Value: system}}
	pod.Spec.Containers[0].VolumeMounts = []core.VolumeMount{{Name: "nats", MountPath: "/etc/forge/nats", ReadOnly: true}}
	pod.Spec.Volumes = []core.Volume{{Name: "nats", VolumeSource: core.VolumeSource{
		Secret: &core.SecretVolumeSource{SecretName: "forge-nats-" + system, Optional: &optional},
	}}}
	return in.ended(t, namespace, pod)
}

// ended runs a pod to its end, and returns its output.
func (in *installation) ended(t *testing.T, namespace string, pod *core.Pod) string {
	t.Helper()
	ctx, name := wait.Context(t), pod.Name
	pods := in.client.CoreV1().Pods(namespace)
	if _, err := pods.Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	var phase core.PodPhase
	wait.Until(t, "pod "+name+" has ended", func() bool {
		p, err := pods.Get(wait.Context(t), name, metav1.GetOptions{})
		if err == nil {
			phase = p.Status.Phase
		}
		return phase == core.PodSucceeded || phase == core.PodFailed
	})
	out := in.logs(ctx, namespace, name, false)
	if phase == core.PodFailed {
		t.Fatalf("pod %s: %s", name, out)
	}
	now := int64(0)
	if err := pods.Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		t.Error(err)
	}
	return out
}

// restrictedPod returns a pod with the program of internal/testpod, as restricted wants it.
func restrictedPod(name string, labels map[string]string, args ...string) *core.Pod {
	yes, no, user, now := true, false, int64(65532), int64(0)
	return &core.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec: core.PodSpec{
			RestartPolicy: core.RestartPolicyNever, AutomountServiceAccountToken: &no, TerminationGracePeriodSeconds: &now,
			SecurityContext: &core.PodSecurityContext{
				RunAsNonRoot: &yes, RunAsUser: &user, FSGroup: &user, SeccompProfile: &core.SeccompProfile{Type: core.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []core.Container{{
				Name: "testpod", Image: testImage, ImagePullPolicy: core.PullNever, Args: args,
				SecurityContext: &core.SecurityContext{AllowPrivilegeEscalation: &no, Capabilities: &core.Capabilities{Drop: []core.Capability{"ALL"}}},
			}},
		},
	}
}

// paths tries which addresses can be reached from where. What must not be reached is
// reached by somebody else, so that it is a policy that blocks it.
func (in *installation) paths(t *testing.T) {
	t.Helper()
	address := func(service string, port int) string {
		pods := in.pods(t, service)
		return fmt.Sprintf("%s:%d", pods[0].Status.PodIP, port)
	}
	client, monitor := address("nats", 4222), address("nats", 8222)
	runner, reviewer := address("runner", 8080), address("reviewer", 8080)
	door, inside := address("gateway", 8081), address("gateway", 8080)
	gitPod, err := in.client.CoreV1().Pods(in.git).Get(wait.Context(t), "git-0", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	git := gitPod.Status.PodIP + ":8080"
	api := in.apiServer(t)
	in.beyond(t)
	in.watchedByPrometheus(t)
	const network = pods.LabelNetwork
	unknown, ofNATS := map[string]string{"app": "x"}, map[string]string{"pfl-forge.io/nats-client": "true"}
	worker := map[string]string{"pfl-forge.io/worker": "true", "pfl-forge.io/nats-client": "true"}
	for _, from := range []struct {
		who, namespace string
		labels         map[string]string
		reached        []string
		blocked        []string
	}{
		{"a worker", in.namespace, worker, []string{client, git, api}, []string{monitor, runner, reviewer, door, metadata, public}},
		{"a runner", in.namespace, ofNATS, []string{client}, []string{monitor, reviewer, git, api, metadata, public}},
		{"a command", in.agents, map[string]string{network: "none"}, nil, []string{client, monitor, runner, git, api, door, metadata, public}},
		{"a command with a network", in.agents, map[string]string{network: "full"}, []string{public}, []string{client, monitor, runner, git, api, door, metadata}},
		{"an unknown pod of the namespace", in.namespace, unknown, nil, []string{client, monitor, runner, git, api, door, metadata, public}},
		{"another system", in.systems, unknown, []string{client, git, api, door, metadata, public}, []string{monitor, runner, reviewer, inside}},
		{"Prometheus", in.systems, map[string]string{"app.kubernetes.io/name": "prometheus"}, []string{runner, reviewer, inside}, []string{monitor}},
		{"a stranger", in.git, unknown, []string{git, api}, []string{client, monitor, runner, reviewer, door, inside}},
	} {
		args := slices.Concat([]string{"dial", "reached"}, from.reached, []string{"blocked"}, from.blocked)
		out := in.run(t, from.namespace, "paths", from.labels, args...)
		for said, addresses := range map[string][]string{"reached": from.reached, "blocked": from.blocked} {
			for _, a := range addresses {
				if !strings.Contains(out, a+" "+said+"\n") {
					t.Errorf("%s: %s should be %s:\n%s", from.who, a, said, out)
				}
			}
		}
		wait.Until(t, "the pod is gone", func() bool {
			_, err := in.client.CoreV1().Pods(from.namespace).Get(wait.Context(t), "paths", metav1.GetOptions{})
			return apierrors.IsNotFound(err)
		})
	}
}

// watchedByPrometheus lets a Prometheus read metrics as components/monitoring
// does, but one in the namespace of the other systems: a cluster that is there
// already may have one of its own where the component wants it.
func (in *installation) watchedByPrometheus(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile("components/monitoring/network.yaml")
	if err != nil {
		t.Fatal(err)
	}
	const theirs = "kubernetes.io/metadata.name: "
	here := strings.Replace(string(text), theirs+"monitoring", theirs+in.systems, 1)
	if here == string(text) {
		t.Fatalf("the policy names no namespace of Prometheus:\n%s", text)
	}
	policy := new(unstructured.Unstructured)
	if err := yaml.Unmarshal([]byte(here), &policy.Object); err != nil {
		t.Fatal(err)
	}
	policy.SetNamespace(in.namespace)
	if err := in.apply(wait.Context(t), policy); err != nil {
		t.Fatal(err)
	}
}

// apiServer returns the address of the API server, as pods know it.
func (in *installation) apiServer(t *testing.T) string {
	t.Helper()
	s, err := in.client.CoreV1().Services("default").Get(wait.Context(t), "kubernetes", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s:%d", s.Spec.ClusterIP, s.Spec.Ports[0].Port)
}

// refusesPrivileges asks for pods that no service of ours is.
func (in *installation) refusesPrivileges(t *testing.T) {
	t.Helper()
	yes, root := true, int64(0)
	for what, spoil := range map[string]func(*core.Pod){
		"privileged": func(p *core.Pod) { p.Spec.Containers[0].SecurityContext = &core.SecurityContext{Privileged: &yes} },
		"root":       func(p *core.Pod) { p.Spec.SecurityContext.RunAsUser = &root },
		"host path": func(p *core.Pod) {
			p.Spec.Volumes = []core.Volume{{Name: "etc", VolumeSource: core.VolumeSource{HostPath: &core.HostPathVolumeSource{Path: "/etc"}}}}
		},
		"host network": func(p *core.Pod) { p.Spec.HostNetwork = true },
		"no seccomp":   func(p *core.Pod) { p.Spec.SecurityContext.SeccompProfile = nil },
	} {
		pod := restrictedPod("bad", nil, "wait")
		spoil(pod)
		err := in.judge(t, in.namespace, pod)
		if err == nil || !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "PodSecurity") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := in.judge(t, in.namespace, restrictedPod("good", nil, "wait")); err != nil {
		t.Errorf("a pod without privileges: %v", err)
	}
}

// judge asks the API server whether it would take a pod.
func (c *cluster) judge(t *testing.T, namespace string, pod *core.Pod) error {
	t.Helper()
	_, err := c.client.CoreV1().Pods(namespace).Create(wait.Context(t), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}
