package outside

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/bus/deliveries"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/services/gateway"
)

// TestHooksAreMounted: a signed delivery is stored, one with another signature
// is not, and both doors are there.
func TestHooksAreMounted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const secret = "0123456789abcdef0123456789abcdef"
	for name, text := range map[string]string{
		"secret": secret, "hooks.yaml": "hooks:\n  - {name: forge, kind: github, secrets: [" + filepath.Join(dir, "secret") + "]}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w := start(t, gateway.Settings{Hooks: filepath.Join(dir, "hooks.yaml")})
	const body = `{"action": "opened"}`
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = mac.Write([]byte(body))
	for signature, want := range map[string]int{
		hex.EncodeToString(mac.Sum(nil)): http.StatusAccepted, strings.Repeat("0", 64): http.StatusUnauthorized,
	} {
		r, err := http.NewRequestWithContext(wait.Context(t), http.MethodPost, w.base+"/hooks/forge", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{
			"Content-Type": "application/json", "X-GitHub-Event": "issues", "X-GitHub-Delivery": "d1", "X-Hub-Signature-256": "sha256=" + signature,
		} {
			r.Header.Set(name, value)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if _ = resp.Body.Close(); resp.StatusCode != want {
			t.Errorf("answered is %d, want %d", resp.StatusCode, want)
		}
	}
	stored := 0
	_, err := w.bus.Deliveries.After(wait.Context(t), 0, func(d deliveries.Delivery) error {
		stored++
		if string(d.Body) != body || d.Hook != "forge" {
			t.Errorf("stored is %+v", d)
		}
		return nil
	})
	if err != nil || stored != 1 {
		t.Errorf("%d are stored, %v", stored, err)
	}
	w.request("ada", http.MethodGet, intents+"/..", "").wants(t, "the other door", http.StatusNotFound)
}
