package webhook

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/internal/redact"
	"github.com/pfl-forge/pfl-forge/services/gateway/chat"
)

// TestTheAddressStays: whatever becomes of a message, no error has the address in it, which is all that is needed to write to the chat; and a
// redirect is not followed.
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
		c, err := New(file, redact.New(), time.Now)
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
