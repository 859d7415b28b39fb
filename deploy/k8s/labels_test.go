//go:build manifests || cluster

package k8s

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	networking "k8s.io/api/networking/v1"

	"github.com/pfl-forge/pfl-forge/agent/pods"
)

// domain is that of all labels and annotations of ours.
const domain = "pfl-forge.io"

// labelKey finds the keys of labels, annotations and their selectors in a text.
var labelKey = regexp.MustCompile(`([a-z0-9-]+(?:\.[a-z0-9-]+)+)/[A-Za-z0-9._-]+["']?:(?:\s|$)`)

// labelsAreOurs refuses labels of another domain than ours and those of Kubernetes: two
// spellings of one label are a selector that finds nothing.
func labelsAreOurs(m *manifests) []string {
	var found []string
	for _, key := range labelKey.FindAllStringSubmatch(string(m.yaml), -1) {
		of := key[1]
		if of == domain || of == "kubernetes.io" || strings.HasSuffix(of, ".kubernetes.io") {
			continue
		}
		if line := fmt.Sprintf("%s is a label of %s, not of %s", key[0], of, domain); !slices.Contains(found, line) {
			found = append(found, line)
		}
	}
	return found
}

// TestLabelsOfPods compares the labels that services give to pods with the domain, and with
// the policy of the agents' namespace that selects by one.
func TestLabelsOfPods(t *testing.T) {
	for _, label := range []string{pods.LabelNetwork, pods.LabelReplica} {
		if !strings.HasPrefix(label, domain+"/") {
			t.Errorf("%s is not of %s", label, domain)
		}
	}
	selected := 0
	for _, p := range of[*networking.NetworkPolicy](build(t, "overlays/agents")) {
		if p.Spec.PodSelector.MatchLabels[pods.LabelNetwork] != "" {
			selected++
		}
	}
	if selected != 1 {
		t.Errorf("%d policies select pods by %s", selected, pods.LabelNetwork)
	}
}
