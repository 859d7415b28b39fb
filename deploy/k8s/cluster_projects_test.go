//go:build cluster

package k8s

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// workers are the services of which there are some of their own in a group.
var workers = []string{"analyzer", "implementer", "reviewer", "reflector"}

// secondProject adds a project by the guide, and then replicas that serve
// nothing else. Each change is merged at the origin of its project, by a
// replica that serves it. It returns how many pods there are more.
func (in *installation) secondProject(t *testing.T, h *handbook, sh *terminal, dir string) (more int) {
	t.Helper()
	const script = `cd /repos && git init -q --bare -b main site.git && git -C site.git config http.receivepack true && git -C seed push -q ../site.git main`
	if _, err := in.exec(wait.Context(t), in.git, "git-0", "git", "sh", "-c", script); err != nil {
		t.Fatal(err)
	}
	apply := func() {
		t.Helper()
		sh.do(dir, h.command("kubectl apply --server-side -k ."))
		status := h.command("kubectl -n pfl-forge rollout status statefulset/implementer")
		sh.do(dir, strings.Replace(status, "statefulset/implementer", "deployment/runner", 1))
		for _, service := range workers {
			sh.do(dir, strings.Replace(status, "implementer", service, 1))
		}
	}
	var site []string
	ask := func(prefix, replica string) {
		t.Helper()
		in.submit(t, prefix, 1)
		site = append(site, in.submitTo(t, "site", prefix+"-site", 1)...)
		in.others = len(site)
		in.merged(t)
		in.mergedAt(t, "site", site)
		for _, made := range []struct{ project, name, by string }{
			{"shop", in.asked[len(in.asked)-1], "forge-implementer-0-"}, {"site", site[len(site)-1], "forge-" + replica + "-"},
		} {
			file := fmt.Sprintf("main:made/%s", made.name)
			by, err := in.exec(wait.Context(t), in.git, "git-0", "git", "git", "-C", "/repos/"+made.project+".git", "show", file)
			if err != nil || !strings.HasPrefix(by, made.by) {
				t.Errorf("%s of %s was made by %q, want %s (%v)", made.name, made.project, by, made.by, err)
			}
		}
	}

	settings := filepath.Join(dir, "kustomization.yaml")
	edit(t, settings, "/shop.git", fmt.Sprintf("/shop.git,site=http://git.%s.svc:8080/site.git", in.git))
	apply()
	ask("added", "implementer-0")

	const group, projects = "# large/kustomization.yaml", "FORGE_PROJECT_GROUPS=site=large"
	if !strings.Contains(h.block("resources: [../pfl-forge/deploy/k8s/overlays/production, large]"), projects) {
		t.Fatalf("the guide does not say %s", projects)
	}
	edit(t, settings, `/site.git"`, fmt.Sprintf(`/site.git", %q`, projects))
	edit(t, settings, "/single-node]", "/single-node, large]")
	if err := os.Mkdir(filepath.Join(dir, "large"), 0o700); err != nil {
		t.Fatal(err)
	}
	here, err := filepath.Rel(filepath.Join(dir, "large"), root(t))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(h.block(group), "../../pfl-forge/", here+"/")
	if err := os.WriteFile(filepath.Join(dir, "large", "kustomization.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	apply()
	of := h.command("kubectl -n pfl-forge rollout status statefulset/implementer-large")
	for _, service := range workers {
		sh.do(dir, strings.Replace(of, "implementer", service, 1))
	}
	ask("grouped", "implementer-large-0")
	in.measured(t)
	if pods := in.pods(t, "implementer"); len(pods) != 2 || !slices.Contains([]string{pods[0].Name, pods[1].Name}, "implementer-large-0") {
		t.Errorf("there are %d implementers", len(pods))
	}
	return len(workers)
}

// edit replaces the one place of a file that has a text.
func edit(t *testing.T, path, old, text string) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(content), old); n != 1 {
		t.Fatalf("%s has %d of %q", path, n, old)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(content), old, text, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
}
