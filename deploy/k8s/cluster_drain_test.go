//go:build cluster

package k8s

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"

	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// drain takes everything of this installation off its node by the guide's command,
// and lets the node have pods again. Changes are under way. What is added to the
// command has it leave the pods of others, since here is no other node.
func (in *installation) drain(t *testing.T, services []string) {
	t.Helper()
	h, sh, began := newHandbook(t), newTerminal(t, in.kubectlScript(t)), time.Now()
	node := in.pods(t, "runner")[0].Spec.NodeName
	drain := strings.Replace(h.command("kubectl drain NODE --ignore-daemonsets --delete-emptydir-data --force"), "NODE", node, 1)
	was := map[string]core.Pod{}
	for _, p := range in.pods(t, "") {
		was[string(p.UID)] = p
	}
	uncordon := strings.Replace(h.command("kubectl uncordon NODE"), "NODE", node, 1)
	t.Cleanup(func() { // also where the drain ends the test; nothing of it ends with its context
		cmd := exec.CommandContext(wait.Context(t), "sh", "-c", uncordon)
		cmd.Env = []string{"PATH=" + filepath.Join(sh.dir, "bin") + ":/usr/bin:/bin"}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
	t.Log(sh.do(sh.dir, drain+" --pod-selector="+installationLabel+"="+in.namespace))
	sh.do(sh.dir, uncordon)
	figure(t, "a node with all services is drained after %s", time.Since(began).Round(time.Second))
	in.ready(t, "", len(services))
	for _, p := range in.pods(t, "") {
		if old, ok := was[string(p.UID)]; ok {
			t.Errorf("%s was never taken off its node", old.Name)
		}
	}
}
