//go:build manifests || cluster

package k8s

import (
	"fmt"
	"strings"

	policy "k8s.io/api/policy/v1"
)

// drainsEnd asks that no budget holds up the drain of a node for ever. Each lets one pod
// go, however many there are, and of the services also those that are not ready: all of
// them are not while NATS is away or a Secret is broken, and then, by the default, none
// could be evicted. NATS keeps the default, since two servers that are gone are its quorum.
func drainsEnd(m *manifests) []string {
	var found []string
	for _, b := range of[*policy.PodDisruptionBudget](m) {
		if b.Spec.MinAvailable != nil || b.Spec.MaxUnavailable == nil || b.Spec.MaxUnavailable.String() != "1" {
			found = append(found, "PodDisruptionBudget "+b.Name+" does not let one pod go")
		}
		always := b.Spec.UnhealthyPodEvictionPolicy != nil && *b.Spec.UnhealthyPodEvictionPolicy == policy.AlwaysAllow
		for _, w := range matching(m, b.Spec.Selector) {
			if nats := strings.HasPrefix(w.pod.Spec.Containers[0].Image, "nats:"); nats == always {
				found = append(found, fmt.Sprintf("PodDisruptionBudget %s: pods of %s that are not ready are let go: %t", b.Name, w.name, always))
			}
		}
	}
	return found
}
