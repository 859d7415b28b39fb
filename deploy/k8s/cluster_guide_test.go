//go:build cluster

package k8s

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// ours is the namespace of the guide.
const ours = "pfl-forge"

// TestClusterGuide does what the guide says with the real kubectl and pfl-forge: it
// installs, asks for changes, rotates a key, adds a project and a group of replicas
// for it, ends everything and goes on from the volumes, and removes it. Differences
// to the text are the overlay, which has to fit on one node, images, and the project.
func TestClusterGuide(t *testing.T) {
	c := findCluster(t)
	version := c.images(t)
	beside(t, 6)
	h := newHandbook(t)
	in := &installation{cluster: c, namespace: ours, git: "pfl-forge-guide-git", systems: "pfl-forge-guide-systems", version: version}
	c.isFree(t, ours)
	t.Cleanup(func() { c.removeNamespace(t, ours) })
	c.namespace(t, in.git, nil)
	c.namespace(t, in.systems, map[string]string{"pfl-forge.io/nats-clients": "true"})
	in.write(t, "testdata/git", "git", "")
	t.Cleanup(func() {
		if t.Failed() {
			in.report(t)
		}
	})

	sh := newTerminal(t, c.kubectlScript(t))
	sh.do(sh.dir, strings.ReplaceAll(h.block("kubectl create namespace"), "--system scanner", "--system "+system))
	in.agents = in.agentsByHand(t, h, sh)
	in.handOver(t)
	dir := in.overlay(t, "overlays/single-node", "", in.shop(t))
	apply := h.command("kubectl apply --server-side -k .")
	sh.do(dir, apply)
	const pods = 6
	in.ready(t, "", pods)
	in.neverRestarted(t, []string{"analyzer", "implementer", "nats", "reflector", "reviewer", "runner"})
	if out := sh.do(dir, h.command("kubectl -n pfl-forge get pods")); strings.Count(out, "Running") != pods {
		t.Errorf("kubectl get pods shows:\n%s", out)
	}
	in.submit(t, "guide", 2)
	in.merged(t)

	before := in.uid(t, "nats-0")
	sh.do(dir, h.block("--role implementer --from -"))
	wait.Until(t, "NATS is another pod", func() bool { is := in.uid(t, "nats-0"); return is != "" && is != before })
	in.ready(t, "", pods)
	sh.do(dir, h.command("kubectl -n pfl-forge rollout status statefulset/implementer"))
	in.submit(t, "renewed", 2)
	in.merged(t)
	workers := in.secondProject(t, h, sh, dir)

	sh.do(dir, h.command("kubectl -n pfl-forge delete statefulsets,deployments --all"))
	in.ready(t, "", 0)
	sh.do(dir, apply)
	in.ready(t, "", pods+workers)
	in.measured(t) // all that was done before is known
	in.submit(t, "again", 2)
	in.merged(t)
	in.measured(t)

	sh.do(dir, h.command("kubectl delete --ignore-not-found -k ."))
	if _, err := c.client.CoreV1().Namespaces().Get(wait.Context(t), ours, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the namespace is there: %v", err)
	}
}

// kubectlScript returns a program that calls kubectl for this cluster.
func (c *cluster) kubectlScript(t *testing.T) string {
	t.Helper()
	home, err := os.UserHomeDir() // a cluster of a script is found by it
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("#!/bin/sh\nexport KUBECONFIG='%s' HOME='%s' FORGE_CLUSTER_HOME='%s' PATH='%s'\nexec %s \"$@\"\n",
		c.kubeconfig, home, os.Getenv("FORGE_CLUSTER_HOME"), os.Getenv("PATH"), strings.Join(c.kubectl, " "))
}

// command returns a command line that the guide has.
func (h *handbook) command(line string) string {
	h.t.Helper()
	if !slices.Contains(h.commands(), line) {
		h.t.Fatalf("the guide does not say %q", line)
	}
	return line
}

// agentsByHand applies the overlay of the agents' namespace as the guide says,
// from the folder of this repository, and returns its name.
func (in *installation) agentsByHand(t *testing.T, h *handbook, sh *terminal) (namespace string) {
	t.Helper()
	m := build(t, "overlays/agents")
	namespace = of[*core.Namespace](m)[0].Name
	in.isFree(t, namespace)
	for _, u := range m.objects {
		if u.GetNamespace() == "" && u.GetKind() != "Namespace" {
			share(u)
		}
	}
	t.Cleanup(func() { in.removeNamespace(t, namespace) })
	sh.do(root(t), h.command("kubectl apply --server-side -k deploy/k8s/overlays/agents"))
	for _, u := range m.objects {
		if u.GetKind() != "NetworkPolicy" {
			continue
		}
		in.dropIPv6(t, u)
		if err := in.apply(wait.Context(t), u); err != nil {
			t.Fatal(err)
		}
	}
	in.awaitAccount(t, namespace)
	return namespace
}

// handOver gives the other system its key, in its own namespace.
func (in *installation) handOver(t *testing.T) {
	t.Helper()
	name := "forge-nats-" + system
	secret, err := in.client.CoreV1().Secrets(in.namespace).Get(wait.Context(t), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	theirs := &core.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: in.systems}, Data: secret.Data}
	if _, err := in.client.CoreV1().Secrets(in.systems).Create(wait.Context(t), theirs, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}
