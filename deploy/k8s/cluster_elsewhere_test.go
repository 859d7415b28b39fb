//go:build cluster

package k8s

import (
	"fmt"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// elsewhere ends the services of this installation, and applies
// overlays/external-nats in another namespace, for which the NATS here is that
// of others. Services there know all that was done, and go on.
func (in *installation) elsewhere(t *testing.T) {
	t.Helper()
	ctx, of := wait.Context(t), metav1.ListOptions{LabelSelector: "pfl-forge.io/service=true"}
	if err := in.client.AppsV1().StatefulSets(in.namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, of); err != nil {
		t.Fatal(err)
	}
	if err := in.client.AppsV1().Deployments(in.namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, of); err != nil {
		t.Fatal(err)
	}
	in.submit(t, "between", 2) // nobody is there
	there := &installation{cluster: in.cluster, namespace: in.namespace + "-else", git: in.git, systems: in.systems, agents: in.agents, version: in.version}
	in.cluster.namespace(t, there.namespace, map[string]string{"pfl-forge.io/nats-clients": "true"})
	t.Cleanup(func() {
		if t.Failed() {
			there.report(t)
		}
	})
	secrets, err := in.client.CoreV1().Secrets(in.namespace).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/part-of=pfl-forge"})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range secrets.Items {
		if s.Name == "forge-nats-server" { // which is the server's alone
			continue
		}
		theirs := &core.Secret{ObjectMeta: metav1.ObjectMeta{Name: s.Name}, Data: s.Data}
		if _, err := in.client.CoreV1().Secrets(there.namespace).Create(ctx, theirs, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	in.ready(t, "", 3) // the servers

	const settings = "\"OTEL_EXPORTER_OTLP_ENDPOINT="
	shop := in.sandboxedShop(t)
	if strings.Count(shop, settings) != 1 {
		t.Fatalf("no %s in\n%s", settings, shop)
	}
	shop = strings.Replace(shop, settings, fmt.Sprintf("\"FORGE_SERVER=tls://nats.%s.svc:4222\", FORGE_STREAM_REPLICAS=3, %s", in.namespace, settings), 1)
	there.write(t, "overlays/external-nats", "", shop+fmt.Sprintf(`  - target: {kind: NetworkPolicy, name: nats-clients}
    patch: |-
      - op: replace
        path: /spec/egress/0/to
        value: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %s}}}]
`, in.namespace))
	const pods = 6 // two runners
	there.ready(t, "", pods)
	there.neverRestarted(t, []string{"analyzer", "implementer", "reflector", "reviewer", "runner"})
	in.submit(t, "elsewhere", 2)
	in.merged(t)
	there.asked = in.asked
	there.measured(t)
}
