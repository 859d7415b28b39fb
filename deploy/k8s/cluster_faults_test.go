//go:build cluster

package k8s

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// smallVolumes gives two implementers so little room that it can be filled.
const smallVolumes = `  - target: {kind: StatefulSet, name: implementer}
    patch: |-
      - {op: remove, path: /spec/volumeClaimTemplates}
      - {op: add, path: /spec/template/spec/volumes/-, value: {name: state, emptyDir: {medium: Memory, sizeLimit: 128Mi}}}
replicas:
  - {name: implementer, count: 2}
`

// TestClusterFaults takes from an installation what a cluster can fail to give: the way to the git
// server for a minute, room on a volume, and NATS with all that it keeps. Everything is merged,
// once, and nothing ends in error. The certificate of NATS is that of components/cert-manager.
func TestClusterFaults(t *testing.T) {
	c := findCluster(t)
	version := c.images(t)
	beside(t, 7)
	in := newSandboxedInstallation(t, c, "pfl-forge-faults", version)
	c.installProfile(t, "pfl-forge/implementer:"+version)
	const more = "components: [../pfl-forge/deploy/k8s/components/backup, ../pfl-forge/deploy/k8s/components/cert-manager, "
	shop := strings.Replace(in.sandboxedShop(t), "components: [", more, 1)
	dir := in.overlay(t, "overlays/single-node", "", shop+in.namedHere()+smallVolumes)
	m := build(t, dir)
	in.knowCertificates(t)
	in.applyAll(t, m)
	in.certify(t, m)
	in.whole(t)

	in.cutOff(t, m)
	in.fill(t, "implementer-1", "implementer-0", "full", 4)
	in.fill(t, "implementer-0", "implementer-1", "filled", 2)
	in.restored(t, dir)
}

// whole waits until all services are ready, of which implementers are two.
func (in *installation) whole(t *testing.T) {
	t.Helper()
	for _, service := range []string{"analyzer", "nats", "reflector", "reviewer", "runner"} {
		in.ready(t, service, 1)
	}
	in.ready(t, "implementer", 2)
}

// cutOff has a network policy cut workers off the git server for a minute and
// until it is noticed, while changes are under way.
func (in *installation) cutOff(t *testing.T, m *manifests) {
	t.Helper()
	const name = "git-and-models"
	i := slices.IndexFunc(m.objects, func(u *unstructured.Unstructured) bool { return u.GetKind() == "NetworkPolicy" && u.GetName() == name })
	if i < 0 {
		t.Fatalf("there is no policy %s", name)
	}
	open, closed := m.objects[i], m.objects[i].DeepCopy()
	if err := unstructured.SetNestedSlice(closed.Object, []any{}, "spec", "egress"); err != nil {
		t.Fatal(err)
	}
	in.submit(t, "before", 4)
	if err := in.apply(wait.Context(t), closed); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	in.submit(t, "cut", 4)
	if _, err := in.exec(wait.Context(t), in.git, "git-0", "git", "sleep", "60"); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "the runner says that the origin does not answer", func() bool { return originIsAway.MatchString(in.metrics(t, "runner")) })
	figure(t, "the git server was out of reach for %s", time.Since(began).Round(time.Second))
	if err := in.apply(wait.Context(t), open); err != nil {
		t.Fatal(err)
	}
	in.merged(t)
	in.measured(t)
	wait.Until(t, "nothing holds the project", func() bool { return !originIsAway.MatchString(in.metrics(t, "runner")) })
}

// originIsAway matches the metric of the fact that the git server does not answer.
var originIsAway = regexp.MustCompile(`(?m)^forge_project_facts\{.*forge_fact="origin".*\} [1-9]`)

// fill leaves no room on the volume of one implementer: it is not ready, and
// the other one makes all changes. With room again it is ready.
func (in *installation) fill(t *testing.T, victim, other, prefix string, count int) {
	t.Helper()
	sh := func(script string) {
		t.Helper()
		if _, err := in.exec(wait.Context(t), in.namespace, victim, "service", "sh", "-c", script); err != nil {
			t.Fatal(err)
		}
	}
	ready := func() bool {
		t.Helper()
		pod, err := in.client.CoreV1().Pods(in.namespace).Get(wait.Context(t), victim, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return isReady(pod)
	}
	wait.Until(t, victim+" has a full volume, and is not ready", func() bool {
		sh("cat /dev/zero >> /state/filling 2> /dev/null || true") // again: what the service removes leaves room
		return !ready()
	})
	in.submit(t, prefix, count)
	in.merged(t)
	for i := range count {
		name := fmt.Sprintf("made/%s-%03d", prefix, i)
		if by := in.file(t, name, func(string) bool { return true }); strings.TrimSpace(by) != other {
			t.Errorf("%s was made by %s", name, by)
		}
	}
	if ready() {
		t.Errorf("%s was ready before it had room", victim)
	}
	sh("rm /state/filling")
	wait.Until(t, victim+" is ready again", ready)
	in.measured(t)
}

// restored makes a backup while changes are under way, loses everything that NATS
// keeps, and does what the guide says: what was merged stays and is not merged
// again, what was asked for before the backup is known, and new changes are merged.
func (in *installation) restored(t *testing.T, dir string) {
	t.Helper()
	h, sh := newHandbook(t), newTerminal(t, in.kubectlScript(t))
	here := func(block string) string { return strings.ReplaceAll(block, "-n pfl-forge ", "-n "+in.namespace+" ") }
	in.submit(t, "backed-up", 6)
	known := len(in.asked)
	said := sh.do(dir, here(h.block("create job backup-now")))
	found := regexp.MustCompile(`/backups/[0-9]{8}T[0-9]{6}Z`).FindAllString(said, -1)
	if len(found) == 0 {
		t.Fatalf("the backup says\n%s", said)
	}
	in.submit(t, "later", 4)
	in.merged(t)
	in.measured(t)

	began := time.Now()
	const named = "/backups/20261130T031700Z"
	sh.do(dir, here(h.block("delete statefulsets,deployments,jobs --all\n")))
	restore := h.block("create job restore")
	if !strings.Contains(restore, named) {
		t.Fatalf("the guide restores no %s:\n%s", named, restore)
	}
	t.Log(sh.do(dir, here(strings.ReplaceAll(restore, named, found[0]))))
	in.ready(t, "runner", 1)
	wait.Until(t, "the runner knows what was asked for before the backup", func() bool { return len(in.names(t, sh)) == known })
	in.cancelMerged(t, sh)
	sh.do(dir, here(h.block(`"suspend": false`)))
	in.whole(t)
	figure(t, "%d intents are restored, and all services are ready, after %s", known, time.Since(began).Round(time.Second))

	in.submit(t, "anew", 2)
	in.merged(t) // what came after the backup is not known any more: its commits are there, once
	wait.Until(t, "new changes are done", func() bool {
		done := in.names(t, sh, "--status", "done")
		for _, of := range []string{"anew-000-", "anew-001-"} {
			if !slices.ContainsFunc(done, func(id string) bool { return strings.HasPrefix(id, of) }) {
				return false
			}
		}
		return true
	})
	if got := len(in.names(t, sh)); got != known+2 {
		t.Errorf("the runner knows %d intents, want %d from before the backup, and 2", got, known)
	}
}

// cancelMerged has a person cancel what the restored journals do not know to be
// done: all of it was merged after the backup.
func (in *installation) cancelMerged(t *testing.T, sh *terminal) {
	t.Helper()
	done := in.names(t, sh, "--status", "done")
	var ahead []string
	for _, id := range in.names(t, sh) {
		if !slices.Contains(done, id) {
			ahead = append(ahead, id)
		}
	}
	t.Logf("done before the backup: %d; merged after it: %q", len(done), ahead)
	if len(ahead) > 0 {
		in.forge(t, sh, append([]string{"cancel"}, ahead...)...)
	}
}

// names returns the ids of intents, of all without a filter.
func (in *installation) names(t *testing.T, sh *terminal, filter ...string) []string {
	t.Helper()
	return strings.Fields(in.forge(t, sh, append([]string{"status", "--limit", "100", "-o", "name"}, filter...)...))
}

// forge runs pfl-forge as a person who reaches NATS through the API server, and
// returns what it prints.
func (in *installation) forge(t *testing.T, sh *terminal, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithCancel(wait.Context(t))
	defer cancel()
	secret, err := in.client.CoreV1().Secrets(in.namespace).Get(ctx, "forge-nats-operator", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"nkey", "ca.crt"} {
		if err := os.WriteFile(filepath.Join(sh.dir, name), secret.Data[name], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	address := strings.Replace(in.forward(ctx, t, "nats", 4222), "http://127.0.0.1", "tls://localhost", 1)
	return sh.do(sh.dir, fmt.Sprintf("pfl-forge --server %s --nkey nkey --tls-ca ca.crt --project shop %s 2>said || { cat said; exit 1; }",
		address, strings.Join(args, " ")))
}
