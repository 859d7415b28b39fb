//go:build cluster

package k8s

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// system is the name of the other system that asks for changes.
const system = "loadgen"

// secrets makes the Secrets of an installation as the guide says, and gives the system its
// own in its namespace.
func (c *cluster) secrets(t *testing.T, namespace, systems string) {
	t.Helper()
	text := command(t, root(t), "go", "run", "./cmd/pfl-forge", "auth", "init", "--kubernetes", "--namespace", namespace, "--system", system, "--projects", "shop")
	for _, one := range strings.Split(text, "---\n") {
		u := new(unstructured.Unstructured)
		if err := yaml.Unmarshal([]byte(one), &u.Object); err != nil {
			t.Fatal(err)
		}
		if u.GetName() == "forge-nats-"+system {
			u.SetNamespace(systems)
		}
		if err := c.apply(wait.Context(t), u); err != nil {
			t.Fatalf("%s: %v", u.GetName(), err)
		}
	}
}
