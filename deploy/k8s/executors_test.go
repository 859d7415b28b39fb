//go:build manifests || cluster

package k8s

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"

	"github.com/pfl-forge/pfl-forge/agent/sandbox"
)

// worker is the label of pods that run agents and commands, or make pods for them.
const worker = "pfl-forge.io/worker"

// nothingRunsBesideWorkers asks that every worker refuses agents and commands for which it can
// make neither a pod nor a sandbox, whatever else an overlay or a component says. A pod that
// the namespace admits can make no sandbox, and without this a project's policy decides.
func nothingRunsBesideWorkers(m *manifests) []string {
	var found []string
	for _, w := range workloads(m) {
		if w.pod.Labels[worker] == "" {
			continue
		}
		for i := range w.pod.Spec.Containers {
			if got := setting(m, &w.pod.Spec.Containers[i], "FORGE_SANDBOX"); got != "require" {
				found = append(found, fmt.Sprintf("%s: FORGE_SANDBOX is %q, not require", w.name, got))
			}
		}
	}
	return found
}

// setting returns a variable of a container as Kubernetes sets it: one of its own goes before
// those of ConfigMaps, and of these the last that has it counts.
func setting(m *manifests, c *core.Container, name string) (value string) {
	for _, from := range c.EnvFrom {
		if from.ConfigMapRef == nil {
			continue
		}
		for _, config := range of[*core.ConfigMap](m) {
			if v, ok := config.Data[name]; ok && config.Name == from.ConfigMapRef.Name {
				value = v
			}
		}
	}
	for _, e := range c.Env {
		if e.Name == name {
			value = e.Value
		}
	}
	return value
}

// profile is the seccomp profile of workers that make sandboxes, below the folder of profiles
// in the kubelet's directory.
const profile = "pfl-forge/inner-sandbox.json"

// makesSandboxes reports whether a pod is a worker that can make sandboxes and nothing else that
// its container's security context would allow: with the profile, with users that are nobody
// on the node, and without the right to make pods.
func makesSandboxes(pod *core.PodTemplateSpec, s *core.SecurityContext) bool {
	return pod.Labels[worker] != "" && !makesPods(&pod.Spec) &&
		pod.Spec.HostUsers != nil && !*pod.Spec.HostUsers &&
		s.ProcMount != nil && *s.ProcMount == core.UnmaskedProcMount &&
		s.SeccompProfile != nil && s.SeccompProfile.Type == core.SeccompProfileTypeLocalhost &&
		s.SeccompProfile.LocalhostProfile != nil && *s.SeccompProfile.LocalhostProfile == profile
}

// podSecurity returns the standard that the namespaces of manifests have to enforce: restricted,
// unless a worker needs a /proc that nothing hides.
func podSecurity(m *manifests) string {
	for _, w := range workloads(m) {
		for i := range w.pod.Spec.Containers {
			if s := w.pod.Spec.Containers[i].SecurityContext; s != nil && s.ProcMount != nil {
				return "baseline"
			}
		}
	}
	return "restricted"
}

// TestInnerSandbox has the workers make sandboxes, and breaks that in ways that the rules
// have to notice.
func TestInnerSandbox(t *testing.T) {
	m := build(t, inner)
	makers := 0
	for _, w := range workloads(m) {
		if makesSandboxes(w.pod, w.pod.Spec.Containers[0].SecurityContext) {
			makers++
		}
	}
	if pods := commandPods(m); makers != 4 || len(pods) != 0 {
		t.Errorf("%d workers make sandboxes, and there are %d templates of pods", makers, len(pods))
	}
	for _, p := range of[*networking.NetworkPolicy](m) {
		if p.Name == "api-server" {
			t.Error("workers reach the API server")
		}
	}
	yes, other := true, "profiles/other.json"
	for name, c := range map[string]struct {
		rule  string
		spoil func(*core.PodTemplateSpec, *core.SecurityContext)
	}{
		"users of the node": {"privileges", func(p *core.PodTemplateSpec, _ *core.SecurityContext) { p.Spec.HostUsers = &yes }},
		"users not said":    {"privileges", func(p *core.PodTemplateSpec, _ *core.SecurityContext) { p.Spec.HostUsers = nil }},
		"other profile":     {"privileges", func(_ *core.PodTemplateSpec, s *core.SecurityContext) { s.SeccompProfile.LocalhostProfile = &other }},
		"no profile": {"privileges", func(_ *core.PodTemplateSpec, s *core.SecurityContext) {
			s.SeccompProfile = &core.SeccompProfile{Type: core.SeccompProfileTypeUnconfined}
		}},
		"no worker": {"privileges", func(p *core.PodTemplateSpec, _ *core.SecurityContext) { delete(p.Labels, worker) }},
		"pods too": {"privileges", func(p *core.PodTemplateSpec, _ *core.SecurityContext) {
			c := &p.Spec.Containers[0]
			c.Env = append(c.Env, core.EnvVar{Name: "FORGE_POD_TEMPLATE", Value: "/x"})
		}},
		"capabilities": {"privileges", func(_ *core.PodTemplateSpec, s *core.SecurityContext) {
			s.Capabilities.Add = []core.Capability{"SYS_ADMIN"}
		}},
	} {
		m := build(t, inner)
		for _, set := range of[*apps.StatefulSet](m) {
			if set.Name == "implementer" {
				c.spoil(&set.Spec.Template, set.Spec.Template.Spec.Containers[0].SecurityContext)
			}
		}
		if len(rules[c.rule](m)) == 0 {
			t.Errorf("%s is not noticed by %s", name, c.rule)
		}
	}
	for _, standard := range []string{"privileged", "restricted", ""} {
		m := build(t, inner)
		of[*core.Namespace](m)[0].Labels["pod-security.kubernetes.io/enforce"] = standard
		if len(policiesAllowPorts(m)) == 0 {
			t.Errorf("nobody notices that the namespace enforces %q", standard)
		}
	}
}

// TestSeccompProfile holds the profile to the runtime's default and what a sandbox takes: of
// namespaces, those that package sandbox makes, all of them at once, and no others.
func TestSeccompProfile(t *testing.T) {
	text, err := os.ReadFile("components/inner-sandbox/seccomp.json")
	if err != nil {
		t.Fatal(err)
	}
	var p struct {
		DefaultAction string
		Architectures []string
		Syscalls      []struct {
			Action   string
			Names    []string
			ErrnoRet int
			Args     []struct {
				Index, Value, ValueTwo uint64
				Op                     string
			}
		}
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		t.Fatal(err)
	}
	if p.DefaultAction != "SCMP_ACT_ERRNO" || !slices.Contains(p.Architectures, "SCMP_ARCH_X86_64") || !slices.Contains(p.Architectures, "SCMP_ARCH_AARCH64") {
		t.Errorf("%s for %v", p.DefaultAction, p.Architectures)
	}
	const namespaces = syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC |
		syscall.CLONE_NEWNET | syscall.CLONE_NEWUTS | syscall.CLONE_NEWCGROUP
	allowed := map[string]bool{}
	var clones []uint64
	for _, s := range p.Syscalls {
		for _, name := range s.Names {
			switch {
			case s.Action == "SCMP_ACT_ERRNO":
			case s.Action != "SCMP_ACT_ALLOW":
				t.Errorf("%s: %s", name, s.Action)
			case name != "clone":
				allowed[name] = true
			case len(s.Args) != 1 || s.Args[0].Op != "SCMP_CMP_MASKED_EQ" || s.Args[0].Index != 0 || s.Args[0].Value != namespaces:
				t.Errorf("clone is allowed with %+v", s.Args)
			default:
				clones = append(clones, s.Args[0].ValueTwo)
			}
		}
	}
	want := []uint64{0} // processes and threads
	for _, network := range []sandbox.Network{sandbox.NetworkFull, sandbox.NetworkNone} {
		want = append(want, uint64((&sandbox.Spec{Network: network}).Attributes().Cloneflags))
	}
	if diff := cmp.Diff(want, clones); diff != "" {
		t.Errorf("namespaces: %s", diff)
	}
	for _, name := range []string{"mount", "mount_setattr", "pivot_root", "umount2", "execve", "seccomp"} {
		if !allowed[name] {
			t.Errorf("%s is not allowed: no sandbox can be made", name)
		}
	}
	for _, name := range []string{
		"unshare", "setns", "clone3", "open_tree", "move_mount", "fsopen", "fsmount", "chroot", "bpf", "perf_event_open", "keyctl", "add_key",
		"request_key", "userfaultfd", "io_uring_setup", "open_by_handle_at", "kexec_load", "init_module", "finit_module", "delete_module", "reboot",
		"swapon", "quotactl", "syslog", "iopl", "ioperm", "settimeofday", "clock_settime", "sethostname", "acct", "nfsservctl",
	} {
		if allowed[name] {
			t.Errorf("%s is allowed, which no sandbox takes", name)
		}
	}
}
