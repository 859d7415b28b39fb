//go:build manifests || cluster

package k8s

import (
	"bytes"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	rbac "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// rules hold of every overlay. Each returns a line for everything that breaks it.
var rules = map[string]func(*manifests) []string{
	"images":     imagesAreVersions,
	"resources":  resourcesAreBounded,
	"probes":     probesAreThere,
	"privileges": podsHaveNoPrivileges,
	"drain":      podsDrain,
	"names":      namesExist,
	"files":      settingsNameFiles,
	"budgets":    drainsEnd,
	"selectors":  selectorsFind,
	"policies":   policiesAllowPorts,
	"roles":      rolesAreNarrow,
	"scaling":    scalersCountSteps,
	"labels":     labelsAreOurs,
	"executors":  nothingRunsBesideWorkers,
	"rotation":   secretsAreRenewed,
	"autoscaler": autoscalersCountSteps,
	"jobs":       jobsEnd,
	"walls":      blocksHaveWalls,
	"waiting":    certificatesAreAwaited,
}

// TestRules checks every overlay.
func TestRules(t *testing.T) {
	for _, dir := range overlays(t) {
		m := build(t, dir)
		for name, rule := range rules {
			for _, broken := range rule(m) {
				t.Errorf("%s: %s: %s", dir, name, broken)
			}
		}
	}
}

// TestRulesBite breaks each rule in a way in which somebody might, and asks that it and no
// other one notices.
func TestRulesBite(t *testing.T) {
	one := func(change func(*apps.StatefulSet, *core.Container)) func(*manifests) {
		return func(m *manifests) {
			sets := of[*apps.StatefulSet](m)
			s := sets[slices.IndexFunc(sets, func(s *apps.StatefulSet) bool { return s.Name == "implementer" })]
			change(s, &s.Spec.Template.Spec.Containers[0])
		}
	}
	scaler := func(change func(*autoscaling.HorizontalPodAutoscaler)) func(*manifests) {
		return func(m *manifests) { change(of[*autoscaling.HorizontalPodAutoscaler](m)[0]) }
	}
	policies := func(change func(*networking.NetworkPolicy)) func(*manifests) {
		return func(m *manifests) {
			for _, p := range of[*networking.NetworkPolicy](m) {
				change(p)
			}
		}
	}
	watcher := func(change func(*apps.Deployment)) func(*manifests) {
		return func(m *manifests) {
			all := of[*apps.Deployment](m)
			change(all[slices.IndexFunc(all, func(d *apps.Deployment) bool { return d.Name == "forges" })])
		}
	}
	secretOf := func(name string) func(*manifests) {
		return one(func(s *apps.StatefulSet, _ *core.Container) {
			for _, v := range s.Spec.Template.Spec.Volumes {
				if v.Name == "nats" {
					v.Secret.SecretName = name
				}
			}
		})
	}
	budget := func(name string, change func(*policy.PodDisruptionBudget)) func(*manifests) {
		return func(m *manifests) {
			all := of[*policy.PodDisruptionBudget](m)
			change(all[slices.IndexFunc(all, func(b *policy.PodDisruptionBudget) bool { return b.Name == name })])
		}
	}
	job := func(change func(*batch.CronJob)) func(*manifests) {
		return func(m *manifests) { change(of[*batch.CronJob](m)[0]) }
	}
	yes := true
	for name, c := range map[string]struct {
		rule  string
		spoil func(*manifests)
	}{
		"latest":   {"images", one(func(_ *apps.StatefulSet, c *core.Container) { c.Image = "pfl-forge/implementer:latest" })},
		"no tag":   {"images", one(func(_ *apps.StatefulSet, c *core.Container) { c.Image = "registry:5000/implementer" })},
		"no limit": {"resources", one(func(_ *apps.StatefulSet, c *core.Container) { delete(c.Resources.Limits, core.ResourceMemory) })},
		"small limit": {"resources", one(func(_ *apps.StatefulSet, c *core.Container) {
			c.Resources.Limits[core.ResourceCPU] = resource.MustParse("1m")
		})},
		"large volume": {"resources", one(func(s *apps.StatefulSet, _ *core.Container) { bounded(s).SizeLimit = nil })},
		"no probe":     {"probes", one(func(_ *apps.StatefulSet, c *core.Container) { c.ReadinessProbe = nil })},
		"other port":   {"probes", one(func(_ *apps.StatefulSet, c *core.Container) { c.LivenessProbe.HTTPGet.Port.StrVal = "https" })},
		"token":        {"privileges", one(func(s *apps.StatefulSet, _ *core.Container) { s.Spec.Template.Spec.AutomountServiceAccountToken = &yes })},
		"needless token": {"privileges", func(m *manifests) {
			d := of[*apps.Deployment](m)[0]
			d.Spec.Template.Spec.Volumes = append(d.Spec.Template.Spec.Volumes, core.Volume{Name: "token", VolumeSource: core.VolumeSource{
				Projected: &core.ProjectedVolumeSource{Sources: []core.VolumeProjection{{ServiceAccountToken: &core.ServiceAccountTokenProjection{}}}},
			}})
		}},
		"command as root":  {"privileges", commandPod("runAsNonRoot: true", "runAsNonRoot: false")},
		"command's root":   {"privileges", commandPod("readOnlyRootFilesystem: true", "readOnlyRootFilesystem: false")},
		"command's limits": {"resources", commandPod("memory: 4Gi", "memory: 1Mi")},
		"command's image":  {"images", commandPod(":set-a-version", ":latest")},
		"root":             {"privileges", one(func(s *apps.StatefulSet, _ *core.Container) { *s.Spec.Template.Spec.SecurityContext.RunAsUser = 0 })},
		"seccomp": {"privileges", one(func(s *apps.StatefulSet, _ *core.Container) {
			s.Spec.Template.Spec.SecurityContext.SeccompProfile = nil
		})},
		"privileged":   {"privileges", one(func(_ *apps.StatefulSet, c *core.Container) { c.SecurityContext.Privileged = &yes })},
		"capabilities": {"privileges", one(func(_ *apps.StatefulSet, c *core.Container) { c.SecurityContext.Capabilities.Drop = nil })},
		"short grace": {"drain", one(func(s *apps.StatefulSet, _ *core.Container) {
			*s.Spec.Template.Spec.TerminationGracePeriodSeconds = 2105
		})},
		"short drain": {"drain", one(func(_ *apps.StatefulSet, c *core.Container) {
			c.Env[slices.IndexFunc(c.Env, func(e core.EnvVar) bool { return e.Name == "FORGE_DRAIN_TIMEOUT" })].Value = "30m"
		})},
		"short token": {"drain", one(func(s *apps.StatefulSet, _ *core.Container) {
			for _, v := range s.Spec.Template.Spec.Volumes {
				if v.Name == "token" {
					*v.Projected.Sources[0].ServiceAccountToken.ExpirationSeconds = 3600
				}
			}
		})},
		"no drain": {"drain", one(func(_ *apps.StatefulSet, c *core.Container) { c.Env = nil })},
		"config":   {"names", one(func(_ *apps.StatefulSet, c *core.Container) { c.EnvFrom[0].ConfigMapRef.Name = "other" })},
		"secret": {"names", one(func(s *apps.StatefulSet, _ *core.Container) {
			for _, v := range s.Spec.Template.Spec.Volumes {
				if v.Secret != nil {
					v.Secret.SecretName = "other"
				}
			}
		})},
		"the authority's key": {"names", secretOf("forge-nats-ca")},
		"a person's key":      {"names", secretOf("forge-nats-ada")},
		"an entry of a Secret": {"names", one(func(s *apps.StatefulSet, _ *core.Container) {
			for _, v := range s.Spec.Template.Spec.Volumes {
				if v.Name == "home" {
					v.Projected.Sources[0].Secret.Items[0].Key = "netcr"
				}
			}
		})},
		"no authority": {"files", watcher(func(d *apps.Deployment) {
			c := &d.Spec.Template.Spec.Containers[0]
			c.VolumeMounts = slices.DeleteFunc(c.VolumeMounts, func(v core.VolumeMount) bool { return v.Name == "nats-ca" })
		})},
		"no settings": {"files", watcher(func(d *apps.Deployment) {
			mountOf(&d.Spec.Template.Spec.Containers[0], "forges").MountPath = "/etc/other"
		})},
		"no template": {"files", func(m *manifests) {
			for _, c := range of[*core.ConfigMap](m) {
				delete(c.Data, templateKey)
			}
		}},
		"all or none":   {"budgets", budget("implementer", func(b *policy.PodDisruptionBudget) { b.Spec.UnhealthyPodEvictionPolicy = nil })},
		"no drain ever": {"budgets", budget("gateway", func(b *policy.PodDisruptionBudget) { b.Spec.MaxUnavailable = new(intstr.FromInt32(0)) })},
		"no quorum":     {"budgets", budget("nats", func(b *policy.PodDisruptionBudget) { b.Spec.UnhealthyPodEvictionPolicy = new(policy.AlwaysAllow) })},
		"keys as variables": {"rotation", one(func(_ *apps.StatefulSet, c *core.Container) {
			c.EnvFrom = append(c.EnvFrom, core.EnvFromSource{SecretRef: &core.SecretEnvSource{LocalObjectReference: core.LocalObjectReference{Name: "forge-models"}}})
		})},
		"a key as a variable": {"rotation", one(func(_ *apps.StatefulSet, c *core.Container) {
			c.Env = append(c.Env, core.EnvVar{Name: "ANTHROPIC_API_KEY", ValueFrom: &core.EnvVarSource{
				SecretKeyRef: &core.SecretKeySelector{LocalObjectReference: core.LocalObjectReference{Name: "forge-models"}, Key: "ANTHROPIC_API_KEY"},
			}})
		})},
		"a frozen file": {"rotation", one(func(_ *apps.StatefulSet, c *core.Container) { mountOf(c, "models").SubPath = "ANTHROPIC_API_KEY" })},
		"unread keys":   {"rotation", one(func(_ *apps.StatefulSet, c *core.Container) { mountOf(c, "models").MountPath = "/elsewhere" })},
		"account":       {"names", one(func(s *apps.StatefulSet, _ *core.Container) { s.Spec.Template.Spec.ServiceAccountName = "default" })},
		"label": {"selectors", one(func(s *apps.StatefulSet, _ *core.Container) {
			s.Spec.Template.Labels["app.kubernetes.io/name"] = "reviewer"
		})},
		"two watchers": {"selectors", watcher(func(d *apps.Deployment) { *d.Spec.Replicas = 2 })},
		"two watchers for a moment": {"selectors", watcher(func(d *apps.Deployment) {
			d.Spec.Strategy.Type = apps.RollingUpdateDeploymentStrategyType
		})},
		"metadata": {"walls", policies(func(p *networking.NetworkPolicy) { dropException(p, "169.254.0.0/16") })},
		"Azure":    {"walls", policies(func(p *networking.NetworkPolicy) { dropException(p, "168.63.129.16/32") })},
		"too early": {"waiting", watcher(func(d *apps.Deployment) {
			for _, v := range d.Spec.Template.Spec.Volumes {
				if v.Name == "nats-ca" {
					*v.Secret.Optional = true
				}
			}
		})},
		"any port":   {"policies", policies(func(p *networking.NetworkPolicy) { dropPorts(p) })},
		"anybody":    {"policies", policies(func(p *networking.NetworkPolicy) { dropPeers(p) })},
		"not denied": {"policies", policies(func(p *networking.NetworkPolicy) { p.Spec.PolicyTypes = p.Spec.PolicyTypes[:1] })},
		"security": {"policies", func(m *manifests) {
			of[*core.Namespace](m)[0].Labels["pod-security.kubernetes.io/enforce"] = "baseline"
		}},
		"wildcard": {"roles", func(m *manifests) {
			m.list = append(m.list, &rbac.Role{Rules: []rbac.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"*"}}}})
		}},
		"consumer": {"scaling", func(m *manifests) { of[*scaledObject](m)[0].Spec.Triggers[0].Metadata.Consumer = "analyse" }},
		"no sandbox": {"executors", func(m *manifests) {
			for _, c := range of[*core.ConfigMap](m) {
				delete(c.Data, "FORGE_SANDBOX")
			}
		}},
		"sandbox by policy": {"executors", func(m *manifests) {
			for _, c := range of[*core.ConfigMap](m) {
				if c.Data["FORGE_SANDBOX"] != "" {
					c.Data["FORGE_SANDBOX"] = "project"
				}
			}
		}},
		"own sandbox": {"executors", one(func(_ *apps.StatefulSet, c *core.Container) {
			c.Env = append(c.Env, core.EnvVar{Name: "FORGE_SANDBOX", Value: "project"})
		})},
		"domain": {"labels", func(m *manifests) {
			m.yaml = bytes.ReplaceAll(m.yaml, []byte("pfl-forge.io/worker"), []byte("pfl-forge.dev/worker"))
		}},
		"made-up label": {"labels", func(m *manifests) { m.yaml = append(m.yaml, "forge.example.com/worker: \"true\"\n"...) }},
		"trigger":       {"scaling", func(m *manifests) { o := of[*scaledObject](m)[0]; o.Spec.Triggers = o.Spec.Triggers[1:] }},
		"no analyzer": {"scaling", func(m *manifests) {
			for _, o := range of[*scaledObject](m) {
				o.Spec.MinReplicaCount = 0
			}
		}},
		"target":       {"scaling", func(m *manifests) { of[*scaledObject](m)[0].Spec.ScaleTargetRef.Name = "runner" }},
		"counted step": {"autoscaler", scaler(func(o *autoscaling.HorizontalPodAutoscaler) { o.Spec.Metrics = o.Spec.Metrics[1:] })},
		"unserved metric": {"autoscaler", scaler(func(o *autoscaling.HorizontalPodAutoscaler) {
			o.Spec.Metrics[0].External.Metric.Name = "forge_step_queue_depth"
		})},
		"unknown step": {"autoscaler", scaler(func(o *autoscaling.HorizontalPodAutoscaler) {
			o.Spec.Metrics[0].External.Metric.Selector.MatchLabels[stepLabel] = "analyse"
		})},
		"no target": {"autoscaler", scaler(func(o *autoscaling.HorizontalPodAutoscaler) { o.Spec.ScaleTargetRef.Name = "runner" })},
		"to none":   {"autoscaler", scaler(func(o *autoscaling.HorizontalPodAutoscaler) { *o.Spec.MinReplicas = 0 })},
		"at once":   {"autoscaler", scaler(func(o *autoscaling.HorizontalPodAutoscaler) { o.Spec.Behavior.ScaleDown.Policies[0].Value = 4 })},
		"two in a minute": {"autoscaler", scaler(func(o *autoscaling.HorizontalPodAutoscaler) {
			o.Spec.Behavior.ScaleDown.Policies[0].PeriodSeconds = 30
		})},
		"too soon": {"autoscaler", scaler(func(o *autoscaling.HorizontalPodAutoscaler) {
			*o.Spec.Behavior.ScaleDown.StabilizationWindowSeconds = 299
		})},
		"two jobs":    {"jobs", job(func(c *batch.CronJob) { c.Spec.ConcurrencyPolicy = batch.AllowConcurrent })},
		"no deadline": {"jobs", job(func(c *batch.CronJob) { c.Spec.JobTemplate.Spec.ActiveDeadlineSeconds = nil })},
		"all jobs":    {"jobs", job(func(c *batch.CronJob) { c.Spec.FailedJobsHistoryLimit = nil })},
		"a time":      {"jobs", job(func(c *batch.CronJob) { c.Spec.TimeZone = nil })},
		"no way":      {"jobs", job(func(c *batch.CronJob) { delete(c.Spec.JobTemplate.Spec.Template.Labels, "pfl-forge.io/nats-client") })},
		"a job's token": {"privileges", job(func(c *batch.CronJob) {
			c.Spec.JobTemplate.Spec.Template.Spec.AutomountServiceAccountToken = &yes
		})},
		"a job's limits":  {"resources", job(func(c *batch.CronJob) { c.Spec.JobTemplate.Spec.Template.Spec.Containers[0].Resources.Limits = nil })},
		"a job's account": {"names", job(func(c *batch.CronJob) { c.Spec.JobTemplate.Spec.Template.Spec.ServiceAccountName = "other" })},
		"a job's key": {"files", job(func(c *batch.CronJob) {
			mountOf(&c.Spec.JobTemplate.Spec.Template.Spec.Containers[0], "nats-ca").MountPath = "/ca"
		})},
		"no claim": {"jobs", func(m *manifests) {
			for _, p := range of[*core.PersistentVolumeClaim](m) {
				p.Name = "other"
			}
		}},
		"two scalers": {"autoscaler", func(m *manifests) {
			m.list = append(m.list, of[*autoscaling.HorizontalPodAutoscaler](build(t, autoscaled))[0])
		}},
	} {
		dir := everything
		if c.rule == "autoscaler" && name != "two scalers" {
			dir = autoscaled
		}
		m := build(t, dir)
		c.spoil(m)
		var noticed []string
		for _, rule := range slices.Sorted(maps.Keys(rules)) {
			if len(rules[rule](m)) > 0 {
				noticed = append(noticed, rule)
			}
		}
		if !slices.Contains(noticed, c.rule) || len(noticed) > 2 {
			t.Errorf("%s is noticed by %q instead of %q", name, strings.Join(noticed, ", "), c.rule)
		}
	}
}

// commandPod changes the template of commands' pods.
func commandPod(from, to string) func(*manifests) {
	return func(m *manifests) {
		for _, c := range of[*core.ConfigMap](m) {
			if text, ok := c.Data[templateKey]; ok {
				c.Data[templateKey] = strings.ReplaceAll(text, from, to)
			}
		}
	}
}

func bounded(s *apps.StatefulSet) *core.EmptyDirVolumeSource {
	for _, v := range s.Spec.Template.Spec.Volumes {
		if v.EmptyDir != nil {
			return v.EmptyDir
		}
	}
	panic("no volume with a bound")
}

func dropPorts(p *networking.NetworkPolicy) {
	for i := range p.Spec.Ingress {
		p.Spec.Ingress[i].Ports = nil
	}
}

// dropException has a policy let pods reach what it left out.
func dropException(p *networking.NetworkPolicy, cidr string) {
	for _, r := range p.Spec.Egress {
		for _, peer := range r.To {
			if peer.IPBlock != nil {
				peer.IPBlock.Except = slices.DeleteFunc(peer.IPBlock.Except, func(e string) bool { return e == cidr })
			}
		}
	}
}

func dropPeers(p *networking.NetworkPolicy) {
	for i := range p.Spec.Egress {
		p.Spec.Egress[i].To = nil
	}
}

// TestNATSVersion checks that the servers of the manifests are those that everything else
// is tested with.
func TestNATSVersion(t *testing.T) {
	gomod, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	images := 0
	for _, w := range workloads(build(t, everything)) {
		version, ok := strings.CutPrefix(w.pod.Spec.Containers[0].Image, "nats:")
		if !ok {
			continue
		}
		images++
		if !strings.Contains(string(gomod), "github.com/nats-io/nats-server/v2 v"+version+"\n") {
			t.Errorf("%s runs %s, go.mod has another version", w.name, version)
		}
	}
	if images != 1 {
		t.Errorf("%d workloads run NATS", images)
	}
}
