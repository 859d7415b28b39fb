//go:build cluster

package k8s

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// eager is the rest of a kustomization that adds components/keda as the guide
// says, and has KEDA do in seconds what it does in minutes.
const eager = `  - target: {kind: ScaledObject, name: implementer|reviewer|reflector}
    patch: |-
      - {op: replace, path: /spec/pollingInterval, value: 2}
      - {op: replace, path: /spec/cooldownPeriod, value: 15}
  - target: {kind: ScaledObject}
    patch: |-
      - op: replace
        path: /spec/advanced/horizontalPodAutoscalerConfig/behavior/scaleDown
        value: {stabilizationWindowSeconds: 5, policies: [{type: Pods, value: 1, periodSeconds: 5}]}
  - target: {kind: ScaledObject, name: implementer}
    patch: |-
      - {op: replace, path: /spec/maxReplicaCount, value: 3}
      - {op: replace, path: /spec/triggers/0/metadata/lagThreshold, value: "1"}
components: [../pfl-forge/deploy/k8s/components/keda]
`

// TestClusterKEDA installs KEDA itself and production with components/keda. From
// none, implementers follow the commands that wait, and go again: what was asked for
// is merged once, and an agent's call goes on to its end when its replica has to go.
func TestClusterKEDA(t *testing.T) {
	c := findCluster(t)
	version := c.images(t)
	beside(t, 8)
	externalMetrics.Lock()
	t.Cleanup(externalMetrics.Unlock)
	began := time.Now()
	available := c.installKEDA(t)
	in := newInstallation(t, c, "pfl-forge-keda", version)
	t.Cleanup(func() {
		if t.Failed() {
			c.reportKEDA(wait.Context(t), t)
		}
	})
	in.model(t, 0)
	available()
	figure(t, "KEDA is available after %s", time.Since(began).Round(time.Second))

	_, replacements, _ := strings.Cut(newHandbook(t).block("kind: ScaledObject"), "replacements:\n")
	scaled := in.shop(t) + small + eager + "replacements:\n" + replacements
	replicas := in.watchReplicas(t, "implementer")
	in.write(t, "overlays/production", "", scaled)
	if said := c.warned.list(); len(said) > 0 {
		t.Errorf("KEDA or Kubernetes warn: %q", said)
	}
	in.ready(t, "nats", 3)
	in.ready(t, "runner", 2)
	in.idle(t)
	if most := replicas.most(); most > 1 {
		t.Errorf("there were %d implementers before anything was asked for", most)
	}

	in.scaledFromNone(t)
	in.merged(t)
	in.measured(t)
	began = time.Now()
	in.idle(t)
	figure(t, "no implementer, reviewer and reflector is left %s after the last change", time.Since(began).Round(time.Second))
	seen := replicas.list()
	t.Logf("replicas of the implementer: %v", seen)
	if last := seen[len(seen)-1]; last != 0 || replicas.most() < 2 {
		t.Errorf("replicas were %v, want some from none and none again", seen)
	}
	in.write(t, "overlays/production", "", scaled)
	in.idle(t)
	if again := replicas.list(); !slices.Equal(again, seen) {
		t.Errorf("applying all of it again makes replicas %v of %v", again, seen)
	}
}

// scaledFromNone has KEDA bring the first implementer for a change by an agent, whose call is
// held, and more of them for others. Then it has to take all. It may have done so before: while
// a server does not answer it in time, another one's word counts, which knows of no work.
func (in *installation) scaledFromNone(t *testing.T) {
	t.Helper()
	const count = 10
	began := time.Now()
	in.ask(t, "the long report")
	in.ready(t, "implementer", 1)
	figure(t, "from none, an implementer is ready %s after a change was asked for", time.Since(began).Round(time.Second))
	busy := in.pods(t, "implementer")[0]
	wait.Until(t, "the agent is at work", func() bool { return in.held(t) == "1" })
	in.submit(t, "waiting", count)
	wait.Until(t, "there are more implementers", func() bool { return len(in.pods(t, "implementer")) > 1 })
	in.commits(t, "shop", count)

	in.pauseScaling(t, "implementer", new("0"))
	// last says whether all others are gone, and the one with an agent at work has to go.
	last := func() bool {
		pods := in.pods(t, "implementer")
		i := slices.IndexFunc(pods, func(p core.Pod) bool { return p.UID == busy.UID })
		if i < 0 {
			t.Fatalf("%s is gone, which had an agent at work", busy.Name)
		}
		return len(pods) == 1 && pods[i].DeletionTimestamp != nil
	}
	wait.Until(t, busy.Name+" is the last, and has to go", last)
	in.unwatched(t)
	if !last() {
		t.Errorf("%s is to stay after all", busy.Name)
	}
	in.ofModel(t, "release")
	in.ready(t, "implementer", 0)
	in.pauseScaling(t, "implementer", nil)
	text := in.file(t, "long.txt", func(content string) bool { return strings.Count(content, "\n") == 2 })
	if want := "forge-" + busy.Name + "-"; !strings.HasPrefix(text, want) || !strings.HasSuffix(text, "\nagain\n") {
		t.Errorf("the change is %q, want the work of %s and what its session added", text, busy.Name)
	}
	if held := in.held(t); held != "1" {
		t.Errorf("the call was made %s times", held)
	}
}

// unwatched has another pod in KEDA's namespace try what its operator does:
// nobody else reads how much there is to do.
func (in *installation) unwatched(t *testing.T) {
	t.Helper()
	monitor := in.pods(t, "nats")[0].Status.PodIP + ":8222"
	out := in.run(t, kedaSpace, "stranger", map[string]string{"app": "x"}, "dial", "reached", in.apiServer(t), "blocked", monitor)
	if !strings.Contains(out, monitor+" blocked\n") {
		t.Errorf("a pod beside KEDA's operator reaches the servers' monitoring:\n%s", out)
	}
}

// idle waits until every scaler says that nothing is to be done, by the number of commands of each
// step, and no replica is left but the least. A trigger whose consumer is missing gives no number.
func (in *installation) idle(t *testing.T) {
	t.Helper()
	for _, o := range in.scalers(t) {
		wait.Until(t, "KEDA counts no command of "+o.GetName(), func() bool {
			return in.condition(t, &o, "Ready") == "True" && in.condition(t, &o, "Active") == "False" && in.waiting(t, o.GetName()) == 0
		})
	}
	for _, service := range []string{"implementer", "reviewer", "reflector"} {
		in.ready(t, service, 0)
	}
	in.ready(t, "analyzer", 1)
}

// scalers returns the ScaledObjects of the installation.
func (in *installation) scalers(t *testing.T) []unstructured.Unstructured {
	t.Helper()
	r, err := in.resource(scaler("", in.namespace))
	if err != nil {
		t.Fatal(err)
	}
	list, err := r.List(wait.Context(t), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 4 {
		t.Fatalf("there are %d ScaledObjects, want one for each service that is scaled", len(list.Items))
	}
	return list.Items
}

// scaler returns a ScaledObject with nothing but its name.
func scaler(name, namespace string) *unstructured.Unstructured {
	u := new(unstructured.Unstructured)
	u.SetAPIVersion("keda.sh/v1alpha1")
	u.SetKind("ScaledObject")
	u.SetName(name)
	u.SetNamespace(namespace)
	return u
}

// waiting returns how many commands KEDA counts for a scaler, over all its
// triggers; -1 if it cannot count those of one. It is asked as the autoscaler
// of Kubernetes asks, by the API of external metrics.
func (in *installation) waiting(t *testing.T, name string) int {
	t.Helper()
	r, err := in.resource(scaler(name, in.namespace))
	if err != nil {
		t.Fatal(err)
	}
	o, err := r.Get(wait.Context(t), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	metrics, _, err := unstructured.NestedStringSlice(o.Object, "status", "externalMetricNames")
	if err != nil {
		t.Fatal(err)
	}
	triggers, _, err := unstructured.NestedSlice(o.Object, "spec", "triggers")
	if err != nil {
		t.Fatal(err)
	}
	if len(metrics) != len(triggers) {
		return -1
	}
	sum := 0
	for _, metric := range metrics {
		path := fmt.Sprintf("/apis/external.metrics.k8s.io/v1beta1/namespaces/%s/%s", in.namespace, metric)
		text, err := in.client.Discovery().RESTClient().Get().AbsPath(path).Param("labelSelector", "scaledobject.keda.sh/name="+name).DoRaw(wait.Context(t))
		if err != nil {
			return -1
		}
		var said struct{ Items []struct{ Value string } }
		if err := json.Unmarshal(text, &said); err != nil || len(said.Items) != 1 {
			t.Fatalf("%s of %s: %v, %s", metric, name, err, text)
		}
		value, err := strconv.Atoi(said.Items[0].Value)
		if err != nil {
			t.Fatalf("%s of %s: %v", metric, name, err)
		}
		sum += value
	}
	return sum
}

// pauseScaling has KEDA keep a service at a number of replicas whatever waits,
// as an operator would, and with nil follow the commands again.
func (in *installation) pauseScaling(t *testing.T, service string, replicas *string) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{"autoscaling.keda.sh/paused-replicas": replicas}}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := in.resource(scaler(service, in.namespace))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Patch(wait.Context(t), service, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// replicaWatch has the numbers of replicas that were asked for, in order.
type replicaWatch struct {
	mu     sync.Mutex
	values []int32
}

// watchReplicas follows how many replicas a StatefulSet is to have, whoever says so.
func (in *installation) watchReplicas(t *testing.T, name string) *replicaWatch {
	t.Helper()
	w := new(replicaWatch)
	changes, err := in.client.AppsV1().StatefulSets(in.namespace).Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	t.Cleanup(func() { changes.Stop(); <-ended })
	go func() {
		defer close(ended)
		for e := range changes.ResultChan() {
			if set, ok := e.Object.(*apps.StatefulSet); ok && set.Spec.Replicas != nil {
				w.add(*set.Spec.Replicas)
			}
		}
	}()
	return w
}

func (w *replicaWatch) add(n int32) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.values) == 0 || w.values[len(w.values)-1] != n {
		w.values = append(w.values, n)
	}
}

func (w *replicaWatch) list() []int32 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.values)
}

func (w *replicaWatch) most() int32 { return slices.Max(w.list()) }
