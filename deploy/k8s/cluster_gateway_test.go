//go:build cluster

package k8s

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pfl-forge/pfl-forge/internal/wait"
)

const (
	// web is the system that asks for changes by HTTP.
	web = "web"
	// hookSecret is known to the gateway, and to who tells it of a forge.
	hookSecret = "known to the gateway and the forge"
)

// gateway is the part of a kustomization that adds the gateway as the guide says,
// and opens it to the namespace of the other system in the place of an ingress.
func (in *installation) gateway(t *testing.T) string {
	t.Helper()
	patches := newHandbook(t).block("hooks: hooks.yaml\n")
	_, settings, found := strings.Cut(patches, "patches:\n")
	if !found {
		t.Fatalf("the guide's settings of the gateway are no patches:\n%s", patches)
	}
	return settings + fmt.Sprintf(`  - target: {kind: NetworkPolicy, name: gateway}
    patch: |-
      - {op: replace, path: /spec/ingress/0/from/0/namespaceSelector/matchLabels, value: {kubernetes.io/metadata.name: %s}}
replicas:
  - {name: gateway, count: 1}
components: [../pfl-forge/deploy/k8s/components/gateway]
`, in.systems)
}

// doors makes the Secret of the gateway, with a token of the system, one of a person, and a hook.
func (in *installation) doors(t *testing.T) {
	t.Helper()
	var system, person string
	in.token, system = makeToken(t)
	in.person, person = makeToken(t)
	secret := &core.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "forge-gateway-tokens", Namespace: in.namespace},
		StringData: map[string]string{
			"tokens.yaml": fmt.Sprintf("tokens:\n  loadgen-web:\n    %s\n    system: %s\n    projects: {shop: [requester]}\n"+
				"  decider:\n    %s\n    person: decider\n    projects: {shop: [approver, auditor]}\n", system, web, person),
			"hooks.yaml":  "hooks:\n  - {name: work, kind: gitea, secrets: [/etc/forge/gateway/work.secret]}\n",
			"work.secret": hookSecret,
		},
	}
	if _, err := in.client.CoreV1().Secrets(in.namespace).Create(wait.Context(t), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// makeToken has the gateway's own program make a token, and returns it with
// what the file of tokens has of it.
func makeToken(t *testing.T) (token, entry string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "run", "./services/gateway/cmd/gateway", "token")
	cmd.Dir = root(t)
	token, entry, _ = strings.Cut(output(t, cmd), "\n")
	return token, strings.TrimSpace(entry)
}

// request has another system ask for changes by HTTP, each of them twice, and
// returns once a runner has taken all.
func (in *installation) request(t *testing.T, prefix string, count int) {
	t.Helper()
	if got, want := in.web(t, "request-"+prefix, "request", in.door(), "shop", prefix, strconv.Itoa(count)), fmt.Sprintf("taken %d\n", count); got != want {
		t.Fatalf("the system said %q, want %q", got, want)
	}
	for i := range count {
		in.asked = append(in.asked, fmt.Sprintf("%s-%03d", prefix, i))
	}
}

// door is the gateway's address for pods of other namespaces.
func (in *installation) door() string { return "http://gateway." + in.namespace + ".svc" }

// web runs the program of internal/testpod as a system with a token, and returns its output.
func (in *installation) web(t *testing.T, name string, args ...string) string {
	t.Helper()
	in.visits++ // no two pods have one name, also not while the one before goes
	pod := restrictedPod(fmt.Sprintf("%s-%d", name, in.visits), map[string]string{"app": "web"}, args...)
	pod.Spec.Containers[0].Env = []core.EnvVar{{Name: "TOKEN", Value: in.token}, {Name: "SECRET", Value: hookSecret}}
	return in.ended(t, in.systems, pod)
}

// outside has a system ask for changes by HTTP, and look at them, and a forge tell of something. A
// delivery is there once however often it is told, and not by who does not know the secret.
func (in *installation) outside(t *testing.T) {
	t.Helper()
	const count = 4
	in.request(t, "http", count)
	in.merged(t)
	list := in.door() + "/api/v1/projects/shop/intents?status=done&requester=" + web
	wait.Until(t, "the gateway shows what is done", func() bool {
		return strings.Count(in.web(t, "look", "get", list), `"status":"done"`) == count
	})
	in.stranger(t, list)
	if got := in.web(t, "deliver", "deliver", in.door()+"/hooks/work"); got != "202 202 401\n" {
		t.Errorf("deliveries are answered by %q", got)
	}
	if got := in.stored(t, "FORGE_HOOKS"); got != 1 {
		t.Errorf("%d deliveries are stored, want 1", got)
	}
}

// stranger asks the gateway with a token that it does not know.
func (in *installation) stranger(t *testing.T, url string) {
	t.Helper()
	known := in.token
	in.token = "pflt_" + strings.Repeat("x", 43)
	defer func() { in.token = known }()
	if got := in.web(t, "stranger", "get", url); !strings.Contains(got, `"status":401`) {
		t.Errorf("a stranger is answered %q", got)
	}
}

// stored returns how many messages a stream has, by the word of its server.
func (in *installation) stored(t *testing.T, stream string) int {
	t.Helper()
	var said struct {
		Accounts []struct {
			Streams []struct {
				Name  string
				State struct{ Messages int }
			} `json:"stream_detail"`
		} `json:"account_details"`
	}
	text := in.page(t, "nats", 8222, "/jsz?accounts=true&streams=true")
	if err := json.Unmarshal([]byte(text), &said); err != nil {
		t.Fatal(err)
	}
	for _, account := range said.Accounts {
		for _, s := range account.Streams {
			if s.Name == stream {
				return s.State.Messages
			}
		}
	}
	t.Fatalf("no stream %s in %s", stream, text)
	return 0
}
