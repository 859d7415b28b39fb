//go:build manifests || cluster

package k8s

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	core "k8s.io/api/core/v1"
	rbac "k8s.io/api/rbac/v1"
)

// TestCommandPods compares what runs commands in pods with the namespace of the pods: who
// makes them may, and nobody else; the template fits into the quota.
func TestCommandPods(t *testing.T) {
	agents := build(t, "overlays/agents")
	namespace, roles := of[*core.Namespace](agents)[0].Name, of[*rbac.Role](agents)
	quota := of[*core.ResourceQuota](agents)[0].Spec.Hard
	want := []rbac.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"create", "get", "list", "delete"}},
		{APIGroups: []string{""}, Resources: []string{"pods/attach"}, Verbs: []string{"get", "create"}},
	}
	if len(roles) != 1 || roles[0].Namespace != namespace {
		t.Fatalf("%d roles", len(roles))
	}
	if diff := cmp.Diff(want, roles[0].Rules); diff != "" {
		t.Error(diff)
	}
	for _, dir := range []string{"overlays/production", "overlays/single-node", "overlays/external-nats"} {
		m := build(t, dir)
		var makers, may []string
		for _, w := range workloads(m) {
			if makesPods(&w.pod.Spec) {
				makers = append(makers, w.pod.Spec.ServiceAccountName)
			}
		}
		for _, b := range of[*rbac.RoleBinding](agents) {
			for _, s := range b.Subjects {
				if s.Kind != "ServiceAccount" || s.Namespace != "pfl-forge" || b.RoleRef.Name != roles[0].Name || b.Namespace != namespace {
					t.Errorf("RoleBinding %s: %+v", b.Name, s)
				}
				may = append(may, s.Name)
			}
		}
		slices.Sort(makers)
		slices.Sort(may)
		if len(makers) != 4 || !slices.Equal(makers, may) {
			t.Errorf("%s: %v make pods, and %v may", dir, makers, may)
		}
		pods := commandPods(m)
		if len(pods) != 1 || pods[0].pod.Namespace != namespace || pods[0].pod.Spec.HostUsers == nil || *pods[0].pod.Spec.HostUsers {
			t.Fatalf("%s: %d templates, or one of another namespace, or with users of the node", dir, len(pods))
		}
		for name, limit := range pods[0].pod.Spec.Containers[0].Resources.Limits {
			if all := quota[core.ResourceName("limits."+string(name))]; limit.Cmp(all) > 0 {
				t.Errorf("%s: %s: a command's limit %s is above %s, the quota", dir, name, &limit, &all)
			}
		}
	}
}
