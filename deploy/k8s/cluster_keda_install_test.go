//go:build cluster

package k8s

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// kedaSpace is the namespace of KEDA's own manifests, from which
// components/keda lets NATS be watched.
const kedaSpace = "keda"

// kedaPrograms has KEDA's programs: the path of a package below cmd, how its
// manifests call the image, and the file that they run in it.
var kedaPrograms = []struct{ main, image, file string }{
	{"operator", "ghcr.io/kedacore/keda", "keda"},
	{"adapter", "ghcr.io/kedacore/keda-metrics-apiserver", "keda-adapter"},
	{"webhooks", "ghcr.io/kedacore/keda-admission-webhooks", "keda-admission-webhooks"},
}

// installKEDA puts KEDA on the cluster by its own manifests, config/default of its
// module, with images made from that module. What it returns waits until KEDA is there.
func (c *cluster) installKEDA(t *testing.T) (available func()) {
	t.Helper()
	if _, err := c.client.CoreV1().Namespaces().Get(wait.Context(t), kedaSpace, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Fatalf("there is a namespace %s already (%v): the KEDA in it is left alone", kedaSpace, err)
	}
	module := kedaVersion(t)
	version := strings.TrimPrefix(module, "v")
	c.loadKEDA(t, version)
	objects := kedaObjects(t, download(t, kedaPath+"@"+module), version)
	t.Cleanup(func() { c.removeKEDA(t, objects) })
	for _, u := range objects {
		if err := c.apply(wait.Context(t), u); err != nil {
			t.Fatalf("%s %s: %v", u.GetKind(), u.GetName(), err)
		}
	}
	return func() {
		t.Helper()
		for _, u := range objects {
			if kind := u.GetKind(); kind == "Deployment" || kind == "APIService" {
				wait.Until(t, kind+" "+u.GetName()+" is available", func() bool { return c.condition(t, u, "Available") == "True" })
			}
		}
		c.mapper.Reset() // there are kinds that were not there
	}
}

// loadKEDA puts an image of each of KEDA's programs into the nodes. Nothing is pulled.
func (c *cluster) loadKEDA(t *testing.T, version string) {
	t.Helper()
	dir := c.programs(t, "keda", "-ldflags=-s -w -X="+kedaPath+"/version.Version="+version)
	for _, p := range kedaPrograms {
		c.loadArchive(t, c.imageOf(t, p.image+":"+version, p.file, filepath.Join(dir, p.main)))
	}
}

// programs returns a folder with the programs of others that deploy/NAME is a go.mod of,
// each by the last part of its package's path: those that make has built into K8S_PROGRAMS,
// or, where the nodes are of another kind than this machine, what is built here.
func (c *cluster) programs(t *testing.T, name string, flags ...string) (dir string) {
	t.Helper()
	if built := os.Getenv("K8S_PROGRAMS"); built != "" && c.arch == runtime.GOARCH {
		return filepath.Join(built, name)
	}
	dir = t.TempDir()
	cmd := exec.CommandContext(t.Context(), "go", slices.Concat([]string{"build", "-trimpath"}, flags, []string{"-o", dir, "tool"})...)
	cmd.Dir = filepath.Join(root(t), "deploy", name) // whose versions are not those of the workspace
	cmd.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+c.arch)
	output(t, cmd)
	return dir
}

// kedaObjects renders config/default of KEDA's module with the images that were
// loaded, and so that it fits on one node beside everything else.
func kedaObjects(t *testing.T, module, version string) []*unstructured.Unstructured {
	t.Helper()
	dir := t.TempDir()
	base, err := filepath.Rel(dir, filepath.Join(module, "config", "default"))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [%s]\nimages:\n", base)
	for _, p := range kedaPrograms {
		fmt.Fprintf(&b, "  - {name: %s, newTag: %s}\n", p.image, version)
	}
	b.WriteString(`patches:
  - target: {kind: Deployment}
    patch: |-
      - {op: replace, path: /spec/template/spec/containers/0/imagePullPolicy, value: Never}
      - {op: replace, path: /spec/template/spec/containers/0/resources/requests, value: {cpu: 5m, memory: 64Mi}}
`)
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	rendered, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatal(err)
	}
	var list []*unstructured.Unstructured
	for _, r := range rendered.Resources() {
		text, err := r.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		u := new(unstructured.Unstructured)
		if err := yaml.Unmarshal(text, &u.Object); err != nil {
			t.Fatal(err)
		}
		list = append(list, u)
	}
	return list
}

// removeKEDA takes away what installKEDA made. What answers for a group of the API goes first: a
// namespace cannot end while a group does not answer.
func (c *cluster) removeKEDA(t *testing.T, objects []*unstructured.Unstructured) {
	t.Helper()
	first := func(u *unstructured.Unstructured) bool {
		return slices.Contains([]string{"APIService", "ValidatingWebhookConfiguration"}, u.GetKind())
	}
	for _, early := range []bool{true, false} {
		for _, u := range slices.Backward(objects) {
			if first(u) == early && u.GetKind() != "Namespace" {
				c.remove(t, u)
			}
		}
	}
	c.removeNamespace(t, kedaSpace)
	c.mapper.Reset()
}

// condition returns the status of a condition of an object; empty if it has none of that type.
func (c *cluster) condition(t *testing.T, u *unstructured.Unstructured, kind string) string {
	t.Helper()
	r, err := c.resource(u)
	if err != nil {
		t.Fatal(err)
	}
	got, err := r.Get(wait.Context(t), u.GetName(), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	status, _ := got.Object["status"].(map[string]any)
	conditions, _ := status["conditions"].([]any) // none, or null, of an object that is new
	for _, entry := range conditions {
		if fields, ok := entry.(map[string]any); ok && fields["type"] == kind {
			return fmt.Sprint(fields["status"])
		}
	}
	return ""
}

// reportKEDA logs what KEDA says.
func (c *cluster) reportKEDA(ctx context.Context, t *testing.T) {
	t.Helper()
	pods, err := c.client.CoreV1().Pods(kedaSpace).List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Log(err)
		return
	}
	for i := range pods.Items {
		p := &pods.Items[i]
		t.Logf("%s: %s, ready %t\n%s", p.Name, p.Status.Phase, p.Status.Phase == core.PodRunning && isReady(p), c.logs(ctx, kedaSpace, p.Name, false))
	}
}
