//go:build cluster

package k8s

import (
	"slices"
	"testing"

	policy "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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

// TestClusterProduction installs production, the services before NATS, and takes every
// NATS server away in turn while changes are made: first as a drain of its node would,
// then as the loss of it. Then autoscalers follow the changes, and services in another
// namespace take the place of all of them. Commands run in sandboxes in the workers' pods.
func TestClusterProduction(t *testing.T) {
	c := findCluster(t)
	version := c.images(t)
	beside(t, 6)
	in := newSandboxedInstallation(t, c, "pfl-forge-three", version)
	c.installProfile(t, "pfl-forge/implementer:"+version)
	const servers, services = 3, 7 // two runners, two implementers, three others
	in.applyWithoutNATS(t, build(t, in.overlay(t, "overlays/production", "", in.sandboxedShop(t)+small+few)), services)
	in.ready(t, "", servers+services)
	in.neverRestarted(t, []string{"analyzer", "implementer", "nats", "reflector", "reviewer", "runner"})
	names := []string{"nats-0", "nats-1", "nats-2"}
	for _, server := range names {
		was := in.uid(t, server)
		in.submit(t, "evicted-"+server, 2)
		if err := in.evict(t, server); err != nil {
			t.Fatal(err)
		}
		for _, other := range names {
			if other == server {
				continue
			}
			if err := in.evict(t, other); !apierrors.IsTooManyRequests(err) {
				t.Errorf("%s may go while %s does: %v", other, server, err)
			}
		}
		in.renewed(t, server, was)
	}
	for _, server := range names {
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

// applyWithoutNATS applies manifests, and the NATS servers among them when so
// many pods of services run and miss them.
func (in *installation) applyWithoutNATS(t *testing.T, m *manifests, services int) {
	t.Helper()
	i := slices.IndexFunc(m.objects, func(u *unstructured.Unstructured) bool { return u.GetKind() == "StatefulSet" && u.GetName() == "nats" })
	if i < 0 {
		t.Fatal("there is no NATS in the manifests")
	}
	later := m.objects[i]
	m.objects = slices.Delete(slices.Clone(m.objects), i, i+1)
	in.applyAll(t, m)
	wait.Seldom(t, "services run, and none is ready without NATS", func() bool {
		running := 0
		for _, p := range in.pods(t, "") {
			if len(p.Status.ContainerStatuses) == 1 && p.Status.ContainerStatuses[0].Started != nil && *p.Status.ContainerStatuses[0].Started {
				running++
			}
			if isReady(&p) {
				t.Fatalf("%s is ready without NATS", p.Name)
			}
		}
		return running == services
	})
	if err := in.apply(wait.Context(t), later); err != nil {
		t.Fatal(err)
	}
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
	wait.Seldom(t, "there is another "+pod, func() bool { is := in.uid(t, pod); return is != "" && is != was })
	in.ready(t, "nats", 3)
}
