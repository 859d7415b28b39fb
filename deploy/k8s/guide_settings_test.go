//go:build manifests || cluster

package k8s

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestGuideSettings puts each piece of a kustomization that the guide has on an installation
// with all services: it changes what is applied, and every rule holds of the result.
func TestGuideSettings(t *testing.T) {
	h := newHandbook(t)
	const plain = "resources: [../pfl-forge/deploy/k8s/overlays/production]\n"
	const all = plain + "components: [../pfl-forge/deploy/k8s/components/gateway]\n"
	before := h.render(t, all)
	tried := 0
	for _, block := range h.blocks("yaml") {
		if strings.Contains(block, "kind: Kustomization") {
			continue // the whole one, which newHandbook renders, and that of a group, which another one names
		}
		tried++
		text := block
		if !strings.Contains(block, "resources:") {
			text = all + block
		}
		after := h.render(t, text)
		if bytes.Equal(after.yaml, before.yaml) {
			t.Errorf("this changes nothing:\n%s", block)
		}
		for name, rule := range rules {
			for _, broken := range rule(after) {
				t.Errorf("%s: %s, with\n%s", name, broken, block)
			}
		}
	}
	if tried < 4 {
		t.Errorf("the guide has %d pieces of a kustomization", tried)
	}
}

// render renders a kustomization of somebody who has this repository beside theirs as ../pfl-forge,
// a template of pods in a file, and the guide's group of replicas.
func (h *handbook) render(t *testing.T, text string) *manifests {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "ours")
	if err := os.MkdirAll(filepath.Join(dir, "large"), 0o700); err != nil {
		t.Fatal(err)
	}
	top, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	relative, err := filepath.Rel(dir, top)
	if err != nil {
		t.Fatal(err)
	}
	template, err := os.ReadFile(filepath.Join("components", "pods", templateKey))
	if err != nil {
		t.Fatal(err)
	}
	header := "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n"
	if !strings.HasPrefix(text, "namespace: ") {
		header += "namespace: pfl-forge\n"
	}
	for name, content := range map[string]string{
		"kustomization.yaml":       header + strings.ReplaceAll(text, "../pfl-forge/", relative+"/"),
		"large/kustomization.yaml": strings.ReplaceAll(h.block("# large/kustomization.yaml"), "../../pfl-forge/", "../"+relative+"/"),
		// One that differs from ours, so that it shows whether it is taken.
		templateKey: "# Ours.\n" + string(template),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return build(t, dir)
}
