//go:build cluster

package k8s

import (
	"fmt"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// setCredentials gives workers a password at the git server and a key of the
// model, which accepts no other one from its beginning.
func (in *installation) setCredentials(t *testing.T, password string) {
	t.Helper()
	in.key = password
	for name, data := range map[string]map[string]any{
		"forge-git":    {"netrc": fmt.Sprintf("machine git.%s.svc login forge password %s\n", in.git, password)},
		"forge-models": {"ANTHROPIC_API_KEY": password + "\n"},
	} {
		secret := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "stringData": data}}
		secret.SetName(name)
		secret.SetNamespace(in.namespace)
		if err := in.apply(wait.Context(t), secret); err != nil {
			t.Fatal(err)
		}
	}
}

// setPasswords has the git server serve the repository to who gives one of the
// passwords, and to nobody else.
func (in *installation) setPasswords(t *testing.T, passwords ...string) {
	t.Helper()
	script := `printf '%s\n' "$@" > /repos/shop.git.passwords`
	if _, err := in.exec(wait.Context(t), in.git, "git-0", "git", append([]string{"sh", "-c", script, "sh"}, passwords...)...); err != nil {
		t.Fatal(err)
	}
}

// changeCredentials has workers log in with another password and key, as the
// guide says: the former ones go once every replica has the new ones. Two changes
// are made after that, one of them by an agent, by the same processes as before.
func (in *installation) changeCredentials(t *testing.T, password string) {
	t.Helper()
	before := in.containers(t)
	in.setPasswords(t, in.key, password)
	in.setCredentials(t, password)
	for _, p := range in.pods(t, "") {
		if p.Labels["pfl-forge.io/worker"] != "true" {
			continue
		}
		// A kubelet looks at volumes once a minute, or when something of the pod has changed.
		in.touch(t, p.Name)
		wait.Until(t, p.Name+" has the new credentials", func() bool {
			got, err := in.exec(wait.Context(t), in.namespace, p.Name, "service", "cat", "/home/forge/.netrc", "/etc/forge/models/ANTHROPIC_API_KEY")
			return err == nil && strings.Count(got, password) == 2
		})
	}
	in.setPasswords(t, password)
	in.ofModel(t, "accept?"+password)

	in.ask(t, "the report anew")
	in.submit(t, "renewed", 1)
	in.merged(t)
	if after := in.containers(t); !after.Equal(before) {
		t.Errorf("containers were %v, and are %v", before, after)
	}
}

// touch changes a pod in a way that means nothing.
func (in *installation) touch(t *testing.T, pod string) {
	t.Helper()
	patch := []byte(`{"metadata": {"annotations": {"` + domain + `/touched": "true"}}}`)
	if _, err := in.client.CoreV1().Pods(in.namespace).Patch(wait.Context(t), pod, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// containers returns the containers of the services that run, each start of one apart.
func (in *installation) containers(t *testing.T) sets.Set[string] {
	t.Helper()
	ids := sets.New[string]()
	for _, p := range in.pods(t, "") {
		for _, s := range p.Status.ContainerStatuses {
			if p.Status.Phase == core.PodRunning {
				ids.Insert(p.Name + " " + s.ContainerID)
			}
		}
	}
	return ids
}
