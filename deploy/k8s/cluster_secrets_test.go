//go:build cluster

package k8s

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	for _, u := range documents(t, authInit(t, nil, "--namespace", namespace, "--system", system, "--projects", "shop", "--gateway", "--backups")) {
		if u.GetName() == "forge-nats-"+system {
			u.SetNamespace(systems)
		}
		if err := c.apply(wait.Context(t), u); err != nil {
			t.Fatalf("%s: %v", u.GetName(), err)
		}
	}
}

// rotate gives a service a new key, and NATS the public part of it, as the guide says.
func (in *installation) rotate(t *testing.T, service string) {
	t.Helper()
	secrets := in.client.CoreV1().Secrets(in.namespace)
	list, err := secrets.List(wait.Context(t), metav1.ListOptions{LabelSelector: "app.kubernetes.io/part-of=pfl-forge"})
	if err != nil {
		t.Fatal(err)
	}
	list.APIVersion, list.Kind = "v1", "List"
	for i := range list.Items {
		list.Items[i].APIVersion, list.Items[i].Kind = "v1", "Secret"
	}
	there, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	before, err := secrets.Get(wait.Context(t), "forge-nats-"+service, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range documents(t, authInit(t, there, "--namespace", in.namespace, "--role", service, "--from", "-")) {
		if err := in.apply(wait.Context(t), u); err != nil {
			t.Fatalf("%s: %v", u.GetName(), err)
		}
	}
	after, err := secrets.Get(wait.Context(t), "forge-nats-"+service, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(before.Data["nkey"], after.Data["nkey"]) {
		t.Fatalf("the key of %s is the same as before", service)
	}
	in.kill(t, "nats")
}

// authInit runs pfl-forge auth init, and returns the Secrets that it prints.
func authInit(t *testing.T, stdin []byte, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), shared("pfl-forge"), append([]string{"auth", "init", "--kubernetes"}, args...)...)
	cmd.Stdin = bytes.NewReader(stdin)
	return output(t, cmd)
}

// documents returns the objects of a YAML stream.
func documents(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	var list []*unstructured.Unstructured
	for one := range strings.SplitSeq(text, "---\n") {
		u := new(unstructured.Unstructured)
		if err := yaml.Unmarshal([]byte(one), &u.Object); err != nil {
			t.Fatal(err)
		}
		if len(u.Object) > 0 {
			list = append(list, u)
		}
	}
	return list
}
