//go:build manifests || cluster

package k8s

import (
	"fmt"
	"slices"
	"strings"
	"time"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/pfl-forge/pfl-forge/config"
)

// workload is a Deployment or a StatefulSet.
type workload struct {
	name string
	pod  *core.PodTemplateSpec
}

func workloads(m *manifests) []workload {
	var out []workload
	for _, d := range of[*apps.Deployment](m) {
		out = append(out, workload{"Deployment " + d.Name, &d.Spec.Template})
	}
	for _, s := range of[*apps.StatefulSet](m) {
		out = append(out, workload{"StatefulSet " + s.Name, &s.Spec.Template})
	}
	return out
}

// unreadable stands for a template that is no pod, and breaks the rule of images alone.
var unreadable = &core.PodTemplateSpec{Spec: core.PodSpec{Containers: []core.Container{{Image: "unreadable"}}}}

// templateKey is the key of a ConfigMap that holds the template of commands' pods.
const templateKey = "pod.yaml"

// commandPods returns the templates of commands' pods, with what agent/pods adds to each.
func commandPods(m *manifests) []workload {
	var out []workload
	for _, c := range of[*core.ConfigMap](m) {
		text, ok := c.Data[templateKey]
		if !ok {
			continue
		}
		var pod core.Pod
		if err := yaml.UnmarshalStrict([]byte(text), &pod); err != nil {
			out = append(out, workload{"ConfigMap " + c.Name + ": " + err.Error(), unreadable})
			continue
		}
		no := false
		pod.Spec.AutomountServiceAccountToken, pod.Spec.EnableServiceLinks = &no, &no
		out = append(out, workload{"ConfigMap " + c.Name, &core.PodTemplateSpec{ObjectMeta: pod.ObjectMeta, Spec: pod.Spec}})
	}
	return out
}

// eachContainer collects what check says of every container of some pods.
func eachContainer(pods []workload, check func(w workload, c *core.Container) []string) []string {
	var found []string
	for _, w := range pods {
		for i := range w.pod.Spec.InitContainers {
			found = append(found, check(w, &w.pod.Spec.InitContainers[i])...)
		}
		for i := range w.pod.Spec.Containers {
			found = append(found, check(w, &w.pod.Spec.Containers[i])...)
		}
	}
	return found
}

// everyPod returns workloads, jobs and the pods of commands.
func everyPod(m *manifests) []workload { return slices.Concat(ownPods(m), commandPods(m)) }

// makesPods reports whether a service is told to run commands in pods.
func makesPods(spec *core.PodSpec) bool {
	return slices.ContainsFunc(spec.Containers, func(c core.Container) bool {
		return slices.ContainsFunc(c.Env, func(e core.EnvVar) bool { return e.Name == "FORGE_POD_TEMPLATE" })
	})
}

// imagesAreVersions refuses images that may be others tomorrow.
func imagesAreVersions(m *manifests) []string {
	return eachContainer(everyPod(m), func(w workload, c *core.Container) (found []string) {
		_, tag, tagged := strings.Cut(c.Image[strings.LastIndex(c.Image, "/")+1:], ":")
		if !tagged || tag == "latest" {
			found = append(found, fmt.Sprintf("%s: image %q has no version", w.name, c.Image))
		}
		if c.ImagePullPolicy != core.PullIfNotPresent {
			found = append(found, fmt.Sprintf("%s: imagePullPolicy %q", w.name, c.ImagePullPolicy))
		}
		return found
	})
}

// resourcesAreBounded asks for a request and a limit of each resource, and for a bound of
// each volume in memory or on the node, below the limit of the pod.
func resourcesAreBounded(m *manifests) []string {
	found := eachContainer(everyPod(m), func(w workload, c *core.Container) (found []string) {
		for _, r := range []core.ResourceName{core.ResourceCPU, core.ResourceMemory, core.ResourceEphemeralStorage} {
			limit, request := c.Resources.Limits[r], c.Resources.Requests[r]
			if limit.IsZero() || request.IsZero() || request.Cmp(limit) > 0 {
				found = append(found, fmt.Sprintf("%s: %s: request %s, limit %s", w.name, r, &request, &limit))
			}
		}
		return found
	})
	for _, w := range everyPod(m) {
		for _, v := range w.pod.Spec.Volumes {
			if v.EmptyDir == nil {
				continue
			}
			limit := w.pod.Spec.Containers[0].Resources.Limits[core.ResourceEphemeralStorage]
			if v.EmptyDir.SizeLimit == nil || v.EmptyDir.SizeLimit.Cmp(limit) >= 0 {
				found = append(found, fmt.Sprintf("%s: volume %s: size limit %v, of the pod's %s", w.name, v.Name, v.EmptyDir.SizeLimit, &limit))
			}
		}
	}
	return found
}

// probesAreThere asks for all three probes, of a port that the container names.
func probesAreThere(m *manifests) []string {
	return eachContainer(workloads(m), func(w workload, c *core.Container) (found []string) {
		for name, p := range map[string]*core.Probe{"startup": c.StartupProbe, "readiness": c.ReadinessProbe, "liveness": c.LivenessProbe} {
			if p == nil || p.HTTPGet == nil || !slices.ContainsFunc(c.Ports, func(port core.ContainerPort) bool { return port.Name == p.HTTPGet.Port.StrVal }) {
				found = append(found, fmt.Sprintf("%s: no %s probe of a port that it has", w.name, name))
			}
		}
		return found
	})
}

// podsHaveNoPrivileges asks for what the Pod Security Standard "restricted" demands, and
// for more: no token but for those that make pods, no environment of Services, a read-only
// root, a number as user.
func podsHaveNoPrivileges(m *manifests) []string {
	var found []string
	for _, w := range everyPod(m) {
		spec, add := &w.pod.Spec, func(what string) { found = append(found, w.name+": "+what) }
		if spec.AutomountServiceAccountToken == nil || *spec.AutomountServiceAccountToken {
			add("mounts a token")
		}
		if spec.EnableServiceLinks == nil || *spec.EnableServiceLinks {
			add("is told the Services of the namespace")
		}
		if spec.HostNetwork || spec.HostPID || spec.HostIPC {
			add("shares namespaces with the node")
		}
		for _, v := range spec.Volumes {
			token := func(s core.VolumeProjection) bool { return s.ServiceAccountToken != nil }
			if v.HostPath != nil || v.Projected != nil && slices.ContainsFunc(v.Projected.Sources, token) && !makesPods(spec) {
				add("volume " + v.Name + " is of the node, or a token that it has no use for")
			}
		}
		s := spec.SecurityContext
		switch {
		case s == nil || s.RunAsNonRoot == nil || !*s.RunAsNonRoot || s.RunAsUser == nil || *s.RunAsUser == 0:
			add("may run as root")
		case s.SeccompProfile == nil || s.SeccompProfile.Type != core.SeccompProfileTypeRuntimeDefault:
			add("has no seccomp profile")
		case s.FSGroup == nil || s.FSGroupChangePolicy == nil || *s.FSGroupChangePolicy != core.FSGroupChangeOnRootMismatch:
			add("changes the owners of all its files at each start, or of none")
		}
	}
	return append(found, eachContainer(everyPod(m), func(w workload, c *core.Container) (found []string) {
		s := c.SecurityContext
		switch {
		case s == nil || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation || s.Privileged != nil:
			found = append(found, w.name+": may get privileges")
		case s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem:
			found = append(found, w.name+": may write to its root")
		case s.Capabilities == nil || !slices.Equal(s.Capabilities.Drop, []core.Capability{"ALL"}) || len(s.Capabilities.Add) > 0:
			found = append(found, w.name+": has capabilities")
		case s.RunAsUser != nil || s.RunAsNonRoot != nil || (s.SeccompProfile != nil || s.ProcMount != nil) && !makesSandboxes(w.pod, s):
			found = append(found, w.name+": a container has a user or profile of its own")
		}
		return found
	})...)
}

// podsDrain compares how long a service may take to end with how long it is given,
// and with the longest call that a project may have where it says nothing else.
func podsDrain(m *manifests) []string {
	const overtime = 5 * time.Second // what a service takes beyond its drain timeout, at most
	return eachContainer(workloads(m), func(w workload, c *core.Container) []string {
		i := slices.IndexFunc(c.Env, func(e core.EnvVar) bool { return e.Name == "FORGE_DRAIN_TIMEOUT" })
		if i < 0 {
			if c.Lifecycle != nil && c.Lifecycle.PreStop != nil {
				return nil
			}
			return []string{w.name + ": no FORGE_DRAIN_TIMEOUT"}
		}
		drain, err := time.ParseDuration(c.Env[i].Value)
		if longest := config.Default().Timeouts.Implement; w.pod.Labels[worker] != "" && drain <= longest {
			return []string{fmt.Sprintf("%s: drains for %s, and a call may take %s by default", w.name, drain, longest)}
		}
		grace := w.pod.Spec.TerminationGracePeriodSeconds
		if err != nil || grace == nil || time.Duration(*grace)*time.Second <= drain+overtime {
			return []string{fmt.Sprintf("%s: drains for %s, and is killed after %v seconds", w.name, drain, grace)}
		}
		return tokensOutliveDrain(w, *grace)
	})
}

// tokensOutliveDrain asks that a pod's tokens are good until its end. A kubelet
// renews one that has a fifth of its time left, and none of a pod that is to end.
func tokensOutliveDrain(w workload, grace int64) (found []string) {
	for i := range w.pod.Spec.Volumes {
		for _, s := range sourcesOf(&w.pod.Spec.Volumes[i]) {
			if token := s.ServiceAccountToken; token != nil && (token.ExpirationSeconds == nil || *token.ExpirationSeconds/5 <= grace) {
				found = append(found, fmt.Sprintf("%s: its token may end while it drains for %d seconds", w.name, grace))
			}
		}
	}
	return found
}
