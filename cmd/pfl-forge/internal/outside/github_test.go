package outside

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/services/gateway"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest"
	"github.com/pfl-forge/pfl-forge/services/gateway/hooks"
)

// TestGitHubAppOfTheGateway: the gateway acts as the App of its settings. A person who gave a login
// up decides as before by the account's number, and whoever has the login now decides nothing.
func TestGitHubAppOfTheGateway(t *testing.T) {
	t.Parallel()
	f := forgetest.NewFake()
	t.Cleanup(f.Close)
	w := newForgeWorld(t, f.URL(), map[string]string{"root1": "root1", "bot": "bot", "ada": "ada", "ada2": "ada2", "eve": "eve"})
	w.dialect, w.bot = hooks.GitHub, forgetest.AppBot
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	const secret = "correct-horse-battery"
	for name, text := range map[string]string{
		"secret": secret, "intake.yaml": forgeRules,
		"key.pem":    string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})),
		"hooks.yaml": "hooks:\n  - {name: work, kind: github, secrets: [" + filepath.Join(dir, "secret") + "]}\n",
		"forges.yaml": fmt.Sprintf("forges:\n  - {name: work, kind: github, url: %q, app: {id: Iv1, installation: %d, key_file: key.pem}, "+
			"repositories: [%q], hooks: [work], rules: intake.yaml}\n",
			w.url, f.Hub.Install("Iv1", &key.PublicKey, w.repo), w.repo),
		"tokens.yaml": w.people(),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	g, _ := runsGateway(t, gateway.Config{
		Settings: &gateway.Settings{
			Listen: "127.0.0.1:0", Tokens: filepath.Join(dir, "tokens.yaml"), Hooks: filepath.Join(dir, "hooks.yaml"), Forges: filepath.Join(dir, "forges.yaml"),
		},
		Bus: w.nats.Connect(t), Log: slog.New(slog.DiscardHandler),
	})
	w.asIn(apis[w.dialect], "root1", http.MethodPost, "/repos/"+w.repo+"/hooks", object{
		"config": object{"url": "http://" + g.Addr().String() + "/hooks/work", "content_type": "json", "secret": secret},
	}, nil)
	issue := w.open()
	w.until(issue, "of project `shop`")
	f.Hub.RenameUser("ada", "ada2")
	w.as("root1", http.MethodPut, "/repos/"+w.repo+"/collaborators/ada", object{"permission": "write"}, nil)
	for who, want := range map[string]forges.Reaction{"ada": forges.Refused, "eve": forges.Refused} {
		w.say(who, issue, "/forge cancel")
		w.reacted(f, who, want)
	}
	w.say("ada2", issue, "/forge cancel")
	w.reacted(f, "ada2", forges.Done)
}

// reacted waits for our reaction to what a person said on the first issue.
func (w *forgeWorld) reacted(f *forgetest.Fake, who string, want forges.Reaction) {
	w.t.Helper()
	wait.Until(w.t, "our reaction to "+who+" is there", func() bool {
		for _, c := range f.Comments(w.repo, 1) {
			for _, r := range c.Reactions {
				if reaction, ok := strings.CutPrefix(r, w.bot+" "); ok && c.By == who && reaction != string(forges.Seen) {
					if reaction != string(want) {
						w.t.Fatalf("our reaction to %s is %s", who, reaction)
					}
					return true
				}
			}
		}
		return false
	})
}
