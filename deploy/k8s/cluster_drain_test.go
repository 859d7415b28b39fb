//go:build cluster

package k8s

import (
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubectl/pkg/drain"

	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// drain takes everything of this installation off its node as kubectl drain does it, with pods of commands,
// and lets the node have pods again. Changes are under way.
func (in *installation) drain(t *testing.T, services []string) {
	t.Helper()
	ctx, began := wait.Context(t), time.Now()
	on, err := in.client.CoreV1().Nodes().Get(ctx, in.pods(t, "runner")[0].Spec.NodeName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	helper := &drain.Helper{
		Ctx: ctx, Client: in.client, PodSelector: "app.kubernetes.io/part-of=pfl-forge",
		Force: true, IgnoreAllDaemonSets: true, DeleteEmptyDirData: true, GracePeriodSeconds: -1, Timeout: wait.Patience,
		Out: t.Output(), ErrOut: t.Output(),
		AdditionalFilters: []drain.PodFilter{func(p core.Pod) drain.PodDeleteStatus {
			if p.Namespace != in.namespace && p.Namespace != in.agents {
				return drain.MakePodDeleteStatusSkip()
			}
			return drain.MakePodDeleteStatusOkay()
		}},
	}
	was := map[string]core.Pod{}
	for _, p := range in.pods(t, "") {
		was[string(p.UID)] = p
	}
	cordon := func(off bool) {
		helper.Ctx = wait.Context(t)
		if err := drain.RunCordonOrUncordon(helper, on, off); err != nil {
			t.Error(err)
		}
	}
	cordon(true)
	err = drain.RunNodeDrain(helper, on.Name)
	cordon(false) // in any case
	if err != nil {
		t.Fatal(err)
	}
	figure(t, "a node with all services is drained after %s", time.Since(began).Round(time.Second))
	in.ready(t, "", len(services))
	for _, p := range in.pods(t, "") {
		if old, ok := was[string(p.UID)]; ok {
			t.Errorf("%s was never taken off its node", old.Name)
		}
	}
}
