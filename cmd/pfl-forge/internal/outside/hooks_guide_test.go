package outside

import (
	"bufio"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/quota"
	"github.com/pfl-forge/pfl-forge/services/gateway"
)

// TestGuideOfHooks sends the requests of the guide to a gateway with the hooks
// of the guide: each is taken, and becomes an intent.
func TestGuideOfHooks(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../../docs/guide-api.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "## Hooks of systems\n")
	section, _, _ = strings.Cut(section, "\n## ")
	_, config, _ := strings.Cut(section, "```yaml\n")
	config, _, _ = strings.Cut(config, "```")
	dir := t.TempDir()
	file := filepath.Join(dir, "hooks.yaml")
	for path, text := range map[string]string{
		filepath.Join(dir, "findings.secret"): hookOfSystems, filepath.Join(dir, "alerts.secret"): hookOfSystems,
		file: strings.ReplaceAll(config, "/etc/pfl-forge", dir),
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w := &hookWorld{world: start(t, gateway.Settings{})}
	w.decides(quota.Limits{})
	w.writeTokens(map[string]string{"ci": `system: ci, projects: {"*": [requester]}`})
	_, base := w.gateway(gateway.Settings{Listen: "127.0.0.1:0", Tokens: w.world.file, Hooks: file})
	blocks := strings.Split(section, "```http\n")[1:]
	for _, block := range blocks {
		block, _, _ = strings.Cut(block, "```")
		head, body, _ := strings.Cut(block, "\n\n")
		body = strings.TrimSpace(body)
		head = strings.ReplaceAll(strings.ReplaceAll(head, "<secret>", hookOfSystems), "<time>", fmt.Sprint(time.Now().Unix()))
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(head + "\n\n")))
		if err != nil {
			t.Fatal(err)
		}
		if r.Header.Get("Webhook-Id") != "" {
			mac := hmac.New(sha256.New, []byte(hookOfSystems))
			fmt.Fprintf(mac, "%s.%s.%s", r.Header.Get("Webhook-Id"), r.Header.Get("Webhook-Timestamp"), body)
			signature := strings.Replace(r.Header.Get("Webhook-Signature"), "<signature>", base64.StdEncoding.EncodeToString(mac.Sum(nil)), 1)
			r.Header.Set("Webhook-Signature", signature)
		}
		again, err := http.NewRequestWithContext(wait.Context(t), r.Method, base+r.URL.Path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		again.Header = r.Header
		resp, err := http.DefaultClient.Do(again)
		if err != nil {
			t.Fatal(err)
		}
		said, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusAccepted {
			t.Errorf("%s is answered with %d %s", r.URL.Path, resp.StatusCode, said)
		}
	}
	if got := w.titles(2); len(blocks) != 2 || len(got) != 2 || got[0] != "Mend the importer" || got[1] != "Update the parser" {
		t.Errorf("of %d requests the intents are %q", len(blocks), got)
	}
}

// TestCloudEventByHTTP: where a change is asked for by HTTP a CloudEvent is
// taken as well, by the table that is that of NATS; the same event is one
// intent, and other content under its name is refused by its id.
func TestCloudEventByHTTP(t *testing.T) {
	t.Parallel()
	w := start(t, gateway.Settings{})
	w.decides(quota.Limits{})
	const kind = "application/cloudevents+json"
	event := func(id, source, data string) string { return structured(id, source, data).body }
	for _, test := range []struct {
		who, body string
		status    int
		want      string
		headers   []string
	}{
		{"scanner", event("finding-1", "scanner", finding), http.StatusCreated, `"result":"new"`, nil},
		{"scanner", event("finding-1", "scanner", finding), http.StatusOK, `"result":"known"`, nil},
		{"scanner", event("finding-1", "https://other.example.com", finding), http.StatusCreated, `"result":"new"`, nil},
		{"scanner", event("finding-1", "scanner", strings.Replace(finding, "1.3", "1.4", 1)), http.StatusConflict, `"field":"id","reason":"was used for`, nil},
		{"scanner", event("finding-2", "a b", finding), http.StatusBadRequest, `"field":"source"`, nil},
		{"scanner", event("finding-2", "scanner", `{"titel": "x"}`), http.StatusBadRequest, `"field":"data.titel"`, nil},
		{"scanner", event("finding-2", "scanner", `{"title": "t", "body": "b", "project": "bank"}`), http.StatusBadRequest, `"field":"data.project"`, nil},
		{"scanner", event("finding-2", "scanner", finding), http.StatusBadRequest, `"field":"Idempotency-Key"`, []string{"Idempotency-Key", "k"}},
		{"scanner", strings.Replace(event("finding-2", "scanner", finding), "1.0", "0.3", 1), http.StatusBadRequest, `"field":"specversion"`, nil},
		{"ada", event("wish-1", "ada", finding), http.StatusCreated, `"result":"new"`, nil},
		{"bob", event("wish-1", "bob", finding), http.StatusForbidden, "that takes the role requester", nil},
		{"ada", event("wish-2", "ada", strings.Replace(finding, `"ada"`, `"bob"`, 1)), http.StatusBadRequest, `"field":"data.actor"`, nil},
	} {
		headers := append([]string{"Content-Type", kind}, test.headers...)
		w.request(test.who, http.MethodPost, intents, test.body, headers...).wants(t, test.body, test.status, test.want)
	}
	path, _ := w.proposed("another")
	w.request("ada", http.MethodPost, path+"/cancel", "{}", "Content-Type", kind).wants(t, "a wish", http.StatusUnsupportedMediaType, "send application/json")
}
