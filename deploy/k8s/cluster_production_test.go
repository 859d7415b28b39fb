//go:build cluster

package k8s

import (
	"testing"

	policy "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// small lets production fit on one node, for a test.
const small = `  - target: {kind: Deployment, name: runner}
    patch: |-
      - {op: replace, path: /spec/template/spec/topologySpreadConstraints/0/whenUnsatisfiable, value: ScheduleAnyway}
  - target: {kind: StatefulSet, name: nats}
    patch: |-
      - {op: replace, path: /spec/template/spec/topologySpreadConstraints/0/whenUnsatisfiable, value: ScheduleAnyway}
      - {op: replace, path: /spec/template/spec/containers/0/resources/requests, value: {cpu: 50m, memory: 64Mi, ephemeral-storage: 16Mi}}
  - target: {kind: StatefulSet, name: implementer}
    patch: |-
      - {op: replace, path: /spec/template/spec/containers/0/resources/requests, value: {cpu: 50m, memory: 64Mi, ephemeral-storage: 16Mi}}
`

// few are the replicas of production that a test needs.
const few = `replicas:
  - {name: implementer, count: 2}
  - {name: analyzer, count: 1}
  - {name: reviewer, count: 1}
`

// TestClusterProduction installs production, and takes every NATS server away in
// turn while changes are made: first as a drain of its node would, then as the loss
// of it. Then autoscalers follow the changes, and services in another namespace
// take the place of all of them. Commands run in sandboxes in the workers' pods.
func TestClusterProduction(t *testing.T) {
	c := findCluster(t)
	version := c.images(t)
	beside(t, 6)
	in := newSandboxedInstallation(t, c, "pfl-forge-three", version)
	c.installProfile(t, "pfl-forge/implementer:"+version)
	in.write(t, "overlays/production", "", in.sandboxedShop(t)+small+few)
	const pods = 10 // three servers, two runners, two implementers, three others
	in.ready(t, "", pods)
	in.neverRestarted(t, []string{"analyzer", "implementer", "nats", "reflector", "reviewer", "runner"})
	servers := []string{"nats-0", "nats-1", "nats-2"}
	for _, server := range servers {
		was := in.uid(t, server)
		in.submit(t, "evicted-"+server, 2)
		if err := in.evict(t, server); err != nil {
			t.Fatal(err)
		}
		for _, other := range servers {
			if other == server {
				continue
			}
			if err := in.evict(t, other); !apierrors.IsTooManyRequests(err) {
				t.Errorf("%s may go while %s does: %v", other, server, err)
			}
		}
		in.renewed(t, server, was)
	}
	for _, server := range servers {
		was := in.uid(t, server)
		in.submit(t, "killed-"+server, 2)
		in.killPod(t, server)
		in.renewed(t, server, was)
	}
	in.merged(t)
	in.measured(t)
	in.autoscaled(t)
	in.elsewhere(t)
}

// evict asks for a pod's end as kubectl drain does.
func (in *installation) evict(t *testing.T, pod string) error {
	t.Helper()
	eviction := &policy.Eviction{ObjectMeta: metav1.ObjectMeta{Name: pod, Namespace: in.namespace}}
	return in.client.PolicyV1().Evictions(in.namespace).Evict(wait.Context(t), eviction)
}

// uid returns what tells a pod from others of the same name.
func (in *installation) uid(t *testing.T, pod string) types.UID {
	t.Helper()
	p, err := in.client.CoreV1().Pods(in.namespace).Get(wait.Context(t), pod, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	return p.UID
}

// renewed waits until another pod has taken the name of one that goes, and all servers are
// ready.
func (in *installation) renewed(t *testing.T, pod string, was types.UID) {
	t.Helper()
	wait.Until(t, "there is another "+pod, func() bool { is := in.uid(t, pod); return is != "" && is != was })
	in.ready(t, "nats", 3)
}
