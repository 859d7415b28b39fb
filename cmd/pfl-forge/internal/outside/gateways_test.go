package outside

import (
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/work"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/services/gateway"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest"
)

// TestForgeOfTheGateway: the gateway watches the forges of its settings, by
// what it finds when it starts and by its hooks.
func TestForgeOfTheGateway(t *testing.T) {
	t.Parallel()
	f := forgetest.NewFake()
	t.Cleanup(f.Close)
	w := newForgeWorld(t, f.URL(), map[string]string{"root1": "root1", "bot": "bot", "ada": "ada", "eve": "eve"})
	settings := w.settings()
	first := w.open()
	g, _ := w.gateway("one", settings)
	w.until(first, "of project `shop`")
	w.asIn(apis[w.dialect], "root1", http.MethodPost, "/repos/"+w.repo+"/hooks", object{
		"type": "gitea", "active": true, "events": []string{"issues", "issue_label", "issue_comment"},
		"config": object{"url": "http://" + g.Addr().String() + "/hooks/work", "content_type": "json", "secret": hookSecret},
	}, nil)
	w.until(w.open(), "of project `shop`")
	list, err := w.nats.Connect(t).Journal.Summaries(wait.Context(t), "shop")
	if err != nil || len(list) != 2 {
		t.Fatalf("there are %d intents, %v", len(list), err)
	}
}

// TestTwoGateways: of two gateways with the same settings one watches the forge,
// and the other one goes on when that ends. Nothing is swept or written twice.
func TestTwoGateways(t *testing.T) {
	t.Parallel()
	f := forgetest.NewFake()
	t.Cleanup(f.Close)
	w := newForgeWorld(t, f.URL(), map[string]string{"root1": "root1", "bot": "bot", "ada": "ada", "eve": "eve"})
	settings := w.settings()
	asked := func() int { return f.Asked(http.MethodGet, apis[w.dialect]+"/user") } // as each watcher does first
	before := asked()
	watchers := func() int { return asked() - before }
	first := w.open()
	_, stop := w.gateway("one", settings)
	wait.Until(t, "one watches", func() bool { return watchers() == 2 }) // the forge gone is one, too
	_, stopOther := w.gateway("two", settings)
	w.until(first, "of project `shop`")
	w.say("ada", first, "/forge status")
	second := w.open()
	w.asksAgain()
	if n := watchers(); n != 2 {
		t.Errorf("beside the first gateway the other one watches: there were %d", n)
	}
	stop()
	w.until(second, "of project `shop`")
	if n := watchers(); n != 4 {
		t.Errorf("after the first gateway there were %d watchers", n)
	}
	stopOther()
	if n := f.Asked(http.MethodPost, first+"/comments"); n != 2 { // ada's and ours
		t.Errorf("%d comments were written on the first issue", n)
	}
	if n := f.Asked(http.MethodPost, second+"/comments"); n != 1 {
		t.Errorf("%d comments were written on the second issue", n)
	}
	list, err := w.nats.Connect(t).Journal.Summaries(wait.Context(t), "shop")
	if err != nil || len(list) != 2 {
		t.Fatalf("there are %d intents, %v", len(list), err)
	}
}

// asksAgain waits for so long that a gateway that waits for a lease has asked for it several times.
func (w *forgeWorld) asksAgain() {
	w.t.Helper()
	b := w.nats.Connect(w.t)
	ctx := wait.Briefly(w.t, 1200*time.Millisecond)
	if l, err := b.Leases.AcquireWatch(ctx, "work", work.LeaseHolder{Replica: "three", Life: "1"}); err == nil {
		l.Release(ctx)
		w.t.Error("the lease of a gateway that watches was given to another one")
	}
}

// hookSecret is that of the hook of settings.
const hookSecret = "correct-horse-battery"

// settings writes the settings of a gateway that watches two forges, one of
// which has no repository.
func (w *forgeWorld) settings() *gateway.Settings {
	w.t.Helper()
	dir := w.t.TempDir()
	for name, text := range map[string]string{
		"secret": hookSecret, "token": w.tokens["bot"], "intake.yaml": forgeRules,
		"tokens.yaml": w.people(),
		"hooks.yaml":  "hooks:\n  - {name: work, kind: gitea, secrets: [" + filepath.Join(dir, "secret") + "]}\n",
		"forges.yaml": fmt.Sprintf("forges:\n  - {name: work, kind: gitea, url: %q, token_file: token, repositories: [%q], hooks: [work], "+
			"rules: intake.yaml}\n  - {name: gone, kind: gitea, url: %q, token_file: token, repositories: [no/such], rules: intake.yaml}\n",
			w.url, w.repo, w.url),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			w.t.Fatal(err)
		}
	}
	return &gateway.Settings{
		Listen: "127.0.0.1:0", Tokens: filepath.Join(dir, "tokens.yaml"), Hooks: filepath.Join(dir, "hooks.yaml"), Forges: filepath.Join(dir, "forges.yaml"),
	}
}

// gateway runs a gateway until what it returns is called, or the test ends.
func (w *forgeWorld) gateway(replica forge.ReplicaID, settings *gateway.Settings) (g *gateway.Gateway, stop func()) {
	w.t.Helper()
	return runsGateway(w.t, gateway.Config{Settings: settings, Bus: w.nats.Connect(w.t), Log: slog.New(slog.DiscardHandler), Replica: replica})
}
