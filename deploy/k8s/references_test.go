//go:build manifests || cluster

package k8s

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	rbac "k8s.io/api/rbac/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/pfl-forge/pfl-forge/agent/pods"
	"github.com/pfl-forge/pfl-forge/agent/sandbox"
)

// guide is where a person reads which Secrets an installation needs.
const guide = "../../docs/guide-kubernetes.md"

// quoted matches what a document has in backticks.
var quoted = regexp.MustCompile("`([^`]+)`")

// documentedSecrets returns the Secrets of the guide's table, with the entries that it gives each
// of them. A name elsewhere in the guide is none: there are Secrets that it says no pod may read.
func documentedSecrets() (map[string][]string, error) {
	text, err := os.ReadFile(guide)
	if err != nil {
		return nil, err
	}
	_, table, found := strings.Cut(string(text), "| Secret | keys | for |\n")
	if !found {
		return nil, errors.New(guide + " has no table of Secrets")
	}
	list := map[string][]string{}
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 {
			break // the first line that is none of the table
		}
		var keys []string
		for _, key := range quoted.FindAllStringSubmatch(cells[2], -1) {
			keys = append(keys, key[1])
		}
		for _, name := range quoted.FindAllStringSubmatch(cells[1], -1) {
			if strings.HasPrefix(name[1], "forge-") {
				list[name[1]] = append(list[name[1]], keys...)
			}
		}
	}
	return list, nil
}

// namesExist looks for the ConfigMaps and ServiceAccounts that pods name, and for their
// Secrets, with the entries that they name, in the guide's table: nothing else makes them.
func namesExist(m *manifests) []string {
	configs, accounts, found := []string{"kube-root-ca.crt"}, []string(nil), []string(nil) // Kubernetes makes that one
	for _, c := range of[*core.ConfigMap](m) {
		configs = append(configs, c.Name)
	}
	for _, a := range of[*core.ServiceAccount](m) {
		accounts = append(accounts, a.Name)
		if a.AutomountServiceAccountToken == nil || *a.AutomountServiceAccountToken {
			found = append(found, "ServiceAccount "+a.Name+" mounts a token")
		}
	}
	documented, err := documentedSecrets()
	if err != nil {
		return []string{err.Error()}
	}
	for _, w := range ownPods(m) {
		if !slices.Contains(accounts, w.pod.Spec.ServiceAccountName) {
			found = append(found, fmt.Sprintf("%s: no ServiceAccount %q", w.name, w.pod.Spec.ServiceAccountName))
		}
		named, secrets := references(&w.pod.Spec)
		for _, name := range named {
			if !slices.Contains(configs, name) {
				found = append(found, fmt.Sprintf("%s: no ConfigMap %q", w.name, name))
			}
		}
		for _, name := range secrets {
			if documented[name] == nil {
				found = append(found, fmt.Sprintf("%s: Secret %q is not in the table of %s", w.name, name, guide))
			}
		}
		for name, keys := range entries(&w.pod.Spec) {
			for _, key := range keys {
				if !slices.Contains(documented[name], key) {
					found = append(found, fmt.Sprintf("%s: Secret %q has no %s in the table of %s", w.name, name, key, guide))
				}
			}
		}
	}
	return found
}

// references returns the ConfigMaps and the Secrets that a pod names.
func references(spec *core.PodSpec) (configs, secrets []string) {
	for _, c := range spec.Containers {
		for _, e := range c.EnvFrom {
			if e.ConfigMapRef != nil {
				configs = append(configs, e.ConfigMapRef.Name)
			}
			if e.SecretRef != nil {
				secrets = append(secrets, e.SecretRef.Name)
			}
		}
	}
	for _, v := range spec.Volumes {
		if v.ConfigMap != nil {
			configs = append(configs, v.ConfigMap.Name)
		}
		if v.Secret != nil {
			secrets = append(secrets, v.Secret.SecretName)
		}
		if v.Projected == nil {
			continue
		}
		for _, s := range v.Projected.Sources {
			if s.ConfigMap != nil {
				configs = append(configs, s.ConfigMap.Name)
			}
			if s.Secret != nil {
				secrets = append(secrets, s.Secret.Name)
			}
		}
	}
	return configs, secrets
}

// entries returns those entries of Secrets that a pod names, by the Secret.
func entries(spec *core.PodSpec) map[string][]string {
	named := map[string][]string{}
	for i := range spec.Volumes {
		for _, s := range sourcesOf(&spec.Volumes[i]) {
			if s.Secret == nil {
				continue
			}
			for _, item := range s.Secret.Items {
				named[s.Secret.Name] = append(named[s.Secret.Name], item.Key)
			}
		}
	}
	return named
}

// alone lists the Deployments of which there is never more than one pod, also
// not while it is replaced.
func alone(m *manifests) []string {
	var names []string
	for _, d := range of[*apps.Deployment](m) {
		if r := d.Spec.Replicas; r != nil && *r == 1 && d.Spec.Strategy.Type == apps.RecreateDeploymentStrategyType {
			names = append(names, "Deployment "+d.Name)
		}
	}
	return names
}

// matching returns the pods that a selector finds.
func matching(m *manifests, s *meta.LabelSelector) []workload {
	selector, err := meta.LabelSelectorAsSelector(s)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(workloads(m), func(w workload) bool { return !selector.Matches(labels.Set(w.pod.Labels)) })
}

// groupLabel is on the pods of a group of replicas, which have the other labels
// of their service, too: its Service and its budget are theirs as well.
const groupLabel = "app.kubernetes.io/instance"

func ofGroup(w workload) bool { return w.pod.Labels[groupLabel] != "" }

// selectorsFind asks that whatever selects pods finds some, and exactly its own: Services
// their ports, budgets and spread constraints the pods that they are written for.
func selectorsFind(m *manifests) []string {
	var found []string
	for _, s := range of[*core.Service](m) {
		pods := slices.DeleteFunc(matching(m, &meta.LabelSelector{MatchLabels: s.Spec.Selector}), ofGroup)
		if len(pods) != 1 {
			found = append(found, fmt.Sprintf("Service %s finds %d workloads", s.Name, len(pods)))
			continue
		}
		for _, p := range s.Spec.Ports {
			if !hasPort(pods, p.TargetPort) {
				found = append(found, fmt.Sprintf("Service %s: %s has no port %s", s.Name, pods[0].name, p.TargetPort.String()))
			}
		}
	}
	budgets := map[string]int{}
	for _, b := range of[*policy.PodDisruptionBudget](m) {
		for _, w := range matching(m, b.Spec.Selector) {
			budgets[w.name]++
		}
	}
	for _, w := range workloads(m) {
		if budgets[w.name] != 1 {
			found = append(found, fmt.Sprintf("%s has %d PodDisruptionBudgets", w.name, budgets[w.name]))
		}
		if len(w.pod.Spec.TopologySpreadConstraints) == 0 && !slices.Contains(alone(m), w.name) {
			found = append(found, w.name+" may have all replicas on one node")
		}
		for _, c := range w.pod.Spec.TopologySpreadConstraints {
			pods := matching(m, c.LabelSelector)
			if !ofGroup(w) {
				pods = slices.DeleteFunc(pods, ofGroup)
			}
			if len(pods) != 1 || pods[0].name != w.name {
				found = append(found, w.name+" is spread by the pods of others")
			}
		}
	}
	for _, s := range of[*apps.StatefulSet](m) {
		headless := slices.ContainsFunc(of[*core.Service](m), func(v *core.Service) bool {
			return v.Name == s.Spec.ServiceName && v.Spec.ClusterIP == core.ClusterIPNone
		})
		if !headless || s.Spec.PersistentVolumeClaimRetentionPolicy == nil || s.Spec.PodManagementPolicy != apps.ParallelPodManagement {
			found = append(found, "StatefulSet "+s.Name+": no headless Service, no policy for its volumes, or replicas that wait for one another")
		}
	}
	return found
}

func hasPort(pods []workload, port intstr.IntOrString) bool {
	return slices.ContainsFunc(pods, func(w workload) bool {
		return slices.ContainsFunc(w.pod.Spec.Containers, func(c core.Container) bool {
			return slices.ContainsFunc(c.Ports, func(p core.ContainerPort) bool {
				return port.Type == intstr.String && p.Name == port.StrVal || port.Type == intstr.Int && p.ContainerPort == port.IntVal
			})
		})
	})
}

// outside are ports of what is not in the manifests: DNS, ssh, http, https, a NATS of
// others, the API server.
var outside = []int32{53, 22, 80, 443, 4222, 6443}

// policiesAllowPorts asks that policies deny everything first, and then allow only ports
// that the pods have, or that are known to be outside.
func policiesAllowPorts(m *manifests) []string {
	var found []string
	denied := map[string]bool{}
	ports := func(p *networking.NetworkPolicy, pods []workload, allowed []networking.NetworkPolicyPort) {
		if len(allowed) == 0 {
			found = append(found, "NetworkPolicy "+p.Name+" allows all ports")
		}
		for _, port := range allowed {
			switch {
			case port.Port == nil || port.Protocol == nil || port.EndPort != nil:
				found = append(found, "NetworkPolicy "+p.Name+" allows a range of ports")
			case port.Port.Type == intstr.Int && slices.Contains(outside, port.Port.IntVal):
			case !hasPort(pods, *port.Port):
				found = append(found, fmt.Sprintf("NetworkPolicy %s: nobody has port %s", p.Name, port.Port.String()))
			}
		}
	}
	for _, p := range of[*networking.NetworkPolicy](m) {
		own := matching(m, &p.Spec.PodSelector)
		whole := len(p.Spec.PodSelector.MatchLabels)+len(p.Spec.PodSelector.MatchExpressions) == 0
		if len(own) == 0 && !whole && p.Spec.PodSelector.MatchLabels[pods.LabelNetwork] != string(sandbox.NetworkFull) { // a label of commands' pods
			found = append(found, "NetworkPolicy "+p.Name+" is of no pods")
		}
		if whole && len(p.Spec.PolicyTypes) == 2 && len(p.Spec.Ingress)+len(p.Spec.Egress) == 0 {
			denied[p.Namespace] = true
		}
		for _, r := range p.Spec.Ingress {
			ports(p, own, r.Ports)
			if len(r.From) == 0 {
				found = append(found, "NetworkPolicy "+p.Name+" lets everybody in")
			}
		}
		for _, r := range p.Spec.Egress {
			ports(p, workloads(m), r.Ports)
			if len(r.To) == 0 {
				found = append(found, "NetworkPolicy "+p.Name+" lets pods go everywhere")
			}
		}
	}
	standard := podSecurity(m)
	for _, n := range of[*core.Namespace](m) {
		if !denied[n.Name] {
			found = append(found, "Namespace "+n.Name+" denies no traffic")
		}
		if n.Labels["pod-security.kubernetes.io/enforce"] != standard {
			found = append(found, "Namespace "+n.Name+" does not enforce "+standard)
		}
	}
	return found
}

// rolesAreNarrow refuses wildcards, and what leads to everything else.
func rolesAreNarrow(m *manifests) []string {
	var found []string
	for _, r := range of[*rbac.Role](m) {
		for _, rule := range r.Rules {
			words := slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs)
			for _, word := range []string{"*", "secrets", "escalate", "bind", "impersonate", "pods/exec"} {
				if slices.Contains(words, word) {
					found = append(found, fmt.Sprintf("Role %s has %s", r.Name, word))
				}
			}
		}
	}
	return found
}
