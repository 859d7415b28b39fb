//go:build cluster

package k8s

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// suiteImage holds the tests of package process, as a volume of pods that have a shell.
const suiteImage = "pfl-forge/suite:test"

// suiteTests are those that run in the pod: the suite of executors, the probes that try from within
// a sandbox to reach what is outside, the system calls that lead around it, and what it inherits.
const suiteTests = "^(TestNamespaces|TestProbes|TestSystemCalls|TestNoDescriptorIsInherited)$"

// suiteScript runs them as a process whose number no sandbox of theirs has for
// one of its own: the first ones of a pod are small.
const suiteScript = `for n in $(seq 300); do /bin/true; done; /suite/suite -test.v -test.run "$0"; exit $?`

// suitePasses is what the suite says where a sandbox can be made: that each of
// these ran, and the probes in one.
var suitePasses = []string{
	"--- PASS: TestNamespaces/", "--- PASS: TestProbes", "probes, of which", "--- PASS: TestSystemCalls", "--- PASS: TestNoDescriptorIsInherited",
}

// TestClusterInnerSandbox runs the suite of executors and the probes in sandboxes that a worker of
// components/inner-sandbox makes in its own pod, and takes away from that pod, one by one,
// what the component gives it: then no sandbox can be made, and the worker says so.
func TestClusterInnerSandbox(t *testing.T) {
	c := findCluster(t)
	version := c.images(t)
	binary := suite(t, c.arch)
	c.loadArchive(t, c.imageOf(t, suiteImage, "suite", binary))
	const restricted, baseline = "pfl-forge-restricted", "pfl-forge-baseline"
	c.namespace(t, restricted, nil)
	c.namespace(t, baseline, map[string]string{"pod-security.kubernetes.io/enforce": "baseline"})
	c.awaitAccount(t, restricted)
	c.awaitAccount(t, baseline)
	node := c.installProfile(t, "pfl-forge/implementer:"+version)

	masked, yes := core.DefaultProcMount, true
	for name, tt := range map[string]struct {
		change  func(*core.PodSpec, *core.SecurityContext)
		fails   string // with what the suite fails; empty: it passes
		refused string // why restricted refuses the pod; empty: it does not
	}{
		"as installed": {
			func(*core.PodSpec, *core.SecurityContext) {}, "",
			`procMount (container "suite" must not set securityContext.procMount to "Unmasked")`,
		},
		"the runtime's profile": {
			func(_ *core.PodSpec, s *core.SecurityContext) { s.SeccompProfile = nil }, "operation not permitted", "procMount",
		},
		"a masked /proc": {func(_ *core.PodSpec, s *core.SecurityContext) { s.ProcMount = &masked }, "mount /proc: operation not permitted", ""},
		"users of the node": {func(p *core.PodSpec, s *core.SecurityContext) {
			s.ProcMount, p.HostUsers = &masked, &yes
		}, "mount /proc: operation not permitted", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := c.suitePod(t, "pfl-forge/implementer:"+version, node)
			tt.change(&pod.Spec, pod.Spec.Containers[0].SecurityContext)
			err := c.judge(t, restricted, pod)
			if tt.refused == "" && err != nil || tt.refused != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), tt.refused)) {
				t.Errorf("restricted says %v", err)
			}
			phase, log := c.runToEnd(t, baseline, pod)
			want := []string{tt.fails}
			if tt.fails == "" {
				want = suitePasses
			}
			for _, text := range want {
				if !strings.Contains(log, text) {
					t.Errorf("the suite does not say %q", text)
				}
			}
			if passed := phase == core.PodSucceeded; passed != (tt.fails == "") || t.Failed() {
				t.Errorf("the pod has %s; it says\n%s", phase, log)
			}
		})
	}
}

// suite returns the path of a program with the tests of executors.
func suite(t *testing.T, arch string) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "suite")
	compile := exec.CommandContext(t.Context(), "go", "test", "-c", "-trimpath", "-ldflags=-s -w", "-o", binary, "./agent/process")
	compile.Dir, compile.Env = root(t), append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch)
	output(t, compile)
	return binary
}

// suitePod returns a pod with the users and security contexts of an implementer as installed,
// which runs the suite and ends.
func (c *cluster) suitePod(t *testing.T, image, node string) *core.Pod {
	t.Helper()
	for _, s := range of[*apps.StatefulSet](build(t, inner)) {
		if s.Name != "implementer" {
			continue
		}
		spec := s.Spec.Template.Spec
		no := false
		return &core.Pod{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "suite-"},
			Spec: core.PodSpec{
				NodeName: node, RestartPolicy: core.RestartPolicyNever, AutomountServiceAccountToken: &no,
				HostUsers: spec.HostUsers, SecurityContext: spec.SecurityContext.DeepCopy(),
				Containers: []core.Container{{
					Name: "suite", Image: image, ImagePullPolicy: core.PullIfNotPresent,
					Command:    []string{"/bin/sh", "-c", suiteScript, suiteTests},
					WorkingDir: "/tmp",
					Env: []core.EnvVar{
						{Name: "CI", Value: "true"}, {Name: "HOME", Value: "/tmp"}, {Name: "TMPDIR", Value: "/state"}, {Name: "TEST_IN_POD", Value: "true"},
					},
					SecurityContext: spec.Containers[0].SecurityContext.DeepCopy(),
					VolumeMounts:    []core.VolumeMount{{Name: "suite", MountPath: "/suite"}, {Name: "tmp", MountPath: "/tmp"}, {Name: "state", MountPath: "/state"}},
				}},
				Volumes: []core.Volume{
					{Name: "suite", VolumeSource: core.VolumeSource{Image: &core.ImageVolumeSource{Reference: suiteImage, PullPolicy: core.PullNever}}},
					{Name: "tmp", VolumeSource: core.VolumeSource{EmptyDir: &core.EmptyDirVolumeSource{}}},
					{Name: "state", VolumeSource: core.VolumeSource{EmptyDir: &core.EmptyDirVolumeSource{}}},
				},
			},
		}
	}
	t.Fatal("there is no implementer")
	return nil
}

// runToEnd makes a pod and returns how it ended, with what it said.
func (c *cluster) runToEnd(t *testing.T, namespace string, pod *core.Pod) (core.PodPhase, string) {
	t.Helper()
	pods := c.client.CoreV1().Pods(namespace)
	made, err := pods.Create(wait.Context(t), pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "pod "+made.Name+" ends", func() bool {
		made, err = pods.Get(wait.Context(t), made.Name, metav1.GetOptions{})
		return err == nil && (made.Status.Phase == core.PodSucceeded || made.Status.Phase == core.PodFailed)
	})
	log, err := pods.GetLogs(made.Name, &core.PodLogOptions{}).DoRaw(wait.Context(t))
	if err != nil {
		t.Fatal(err)
	}
	return made.Status.Phase, string(log)
}

// profileNamespace is that of the pod which has put the seccomp profile on a node.
const profileNamespace = "pfl-forge-node"

// installProfile puts the seccomp profile on a node, as whoever sets nodes up does, and returns
// the node. One that is there already has to be the same; otherwise it goes with the last test:
// those that go on side by side have one.
func (c *cluster) installProfile(t *testing.T, image string) (node string) {
	t.Helper()
	together.mu.Lock()
	defer together.mu.Unlock()
	if together.node == "" {
		c.makeNamespace(t, profileNamespace, map[string]string{"pod-security.kubernetes.io/enforce": "privileged"})
		together.node = "unknown" // the namespace goes, whatever becomes of the pod
		together.node = c.putProfile(t, profileNamespace, image)
	}
	return together.node
}

// putProfile has a pod put the seccomp profile on its node, and returns that.
// The profile goes with the pod.
func (c *cluster) putProfile(t *testing.T, namespace, image string) (node string) {
	t.Helper()
	text, err := os.ReadFile("components/inner-sandbox/seccomp.json")
	if err != nil {
		t.Fatal(err)
	}
	ctx, key := wait.Context(t), filepath.Base(profile)
	config := &core.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "profile"}, Data: map[string]string{key: string(text)}}
	if _, err := c.client.CoreV1().ConfigMaps(namespace).Create(ctx, config, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	root, at, kind := int64(0), "/node/"+profile, core.HostPathDirectoryOrCreate
	script := "mkdir -p " + filepath.Dir(at) + "; if [ -e " + at + " ]; then cmp /profile/" + key + " " + at + " || exit 1; " +
		"else cp /profile/" + key + " " + at + "; trap 'rm " + at + "; exit 0' TERM; fi; touch /tmp/there; sleep infinity & wait"
	pod := &core.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "profile"},
		Spec: core.PodSpec{
			RestartPolicy: core.RestartPolicyNever, SecurityContext: &core.PodSecurityContext{RunAsUser: &root},
			Containers: []core.Container{{
				Name: "profile", Image: image, ImagePullPolicy: core.PullIfNotPresent, Command: []string{"/bin/sh", "-c", script},
				// Asked until it is there, and no more: each call of a program
				// in a pod costs the node a tenth of a second of processor time.
				StartupProbe: &core.Probe{
					ProbeHandler:     core.ProbeHandler{Exec: &core.ExecAction{Command: []string{"test", "-e", "/tmp/there"}}},
					PeriodSeconds:    1,
					FailureThreshold: 600,
				},
				VolumeMounts: []core.VolumeMount{{Name: "profile", MountPath: "/profile"}, {Name: "node", MountPath: "/node"}},
			}},
			Volumes: []core.Volume{
				{Name: "profile", VolumeSource: core.VolumeSource{ConfigMap: &core.ConfigMapVolumeSource{
					LocalObjectReference: core.LocalObjectReference{Name: config.Name},
				}}},
				{Name: "node", VolumeSource: core.VolumeSource{HostPath: &core.HostPathVolumeSource{Path: c.profiles, Type: &kind}}},
			},
		},
	}
	pods := c.client.CoreV1().Pods(namespace)
	c.awaitAccount(t, namespace)
	if _, err := pods.Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "the profile is on the node", func() bool {
		pod, err = pods.Get(ctx, pod.Name, metav1.GetOptions{})
		if err != nil || pod.Status.Phase == core.PodFailed {
			t.Fatalf("%s on the node is another profile, or: %v", filepath.Join(c.profiles, profile), err)
		}
		return len(pod.Status.ContainerStatuses) == 1 && pod.Status.ContainerStatuses[0].Ready
	})
	return pod.Spec.NodeName
}
