package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/internal/redact"
	"github.com/pfl-forge/pfl-forge/services/gateway/chat"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/rest"
)

// TestTheAddressStays: whatever becomes of a message, no error has the address in it,
// which is all that is needed to write to the chat; and a redirect is not followed.
func TestTheAddressStays(t *testing.T) {
	asked := false
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	t.Cleanup(other.Close)
	for _, status := range []int{http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, 302, 308, 429, 500, 0} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", other.URL)
			if status == 0 {
				panic(http.ErrAbortHandler)
			}
			w.WriteHeader(status)
		}))
		file := filepath.Join(t.TempDir(), "url")
		if err := os.WriteFile(file, []byte(srv.URL+"/hooks/hunter2?key=hunter2\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := New(Config{URLFile: file, Secrets: redact.New(), Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Post(t.Context(), "", &chat.Notice{Title: "T"})
		if err == nil || strings.Contains(err.Error(), "hunter2") || asked {
			t.Errorf("%d: %v", status, err)
		}
		srv.Close()
	}
}

// TestSigned: what is sent has the signature of the Standard Webhooks, and a
// key that is none is refused without being repeated.
func TestSigned(t *testing.T) {
	var got http.Header
	var body []byte
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		got = q.Header
		body, _ = io.ReadAll(q.Body)
	}))
	t.Cleanup(srv.Close)
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	key := []byte("0123456789abcdef01234567")
	cfg := Config{URLFile: write("url", srv.URL+"/hook"), Secrets: redact.New(), Now: time.Now}
	for _, bad := range []string{"hunter2", "whsec_hunter2", "whsec_" + base64.StdEncoding.EncodeToString(key[:8])} {
		cfg.SecretFile = write("bad", bad)
		if _, err := New(cfg); err == nil || !strings.HasPrefix(err.Error(), "secret_file: ") || strings.Contains(err.Error(), bad) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	cfg.SecretFile = write("key", "whsec_"+base64.StdEncoding.EncodeToString(key))
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, seen := range []string{"a", "a", "b"} {
		if _, err := c.Post(t.Context(), "", &chat.Notice{Title: "T", Seen: seen}); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, got.Get("Webhook-Id"))
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(got.Get("Webhook-Id") + "." + got.Get("Webhook-Timestamp") + "." + string(body)))
		if want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)); got.Get("Webhook-Signature") != want {
			t.Errorf("signed %q, want %q", got.Get("Webhook-Signature"), want)
		}
	}
	if ids[0] == "" || ids[0] != ids[1] || ids[0] == ids[2] {
		t.Errorf("the same message, and one about another state, have the ids %q", ids)
	}
}

// TestInside: an address in the gateway's own network is not asked, unless the settings say so.
func TestInside(t *testing.T) {
	for _, address := range []string{"https://169.254.169.254/latest", "https://10.255.255.1/hook"} {
		file := filepath.Join(t.TempDir(), "url")
		if err := os.WriteFile(file, []byte(address), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := New(Config{URLFile: file, Secrets: redact.New(), Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Post(t.Context(), "", &chat.Notice{Title: "T"}); !errors.Is(err, rest.ErrInside) {
			t.Errorf("%s: %v", address, err)
		}
	}
}
