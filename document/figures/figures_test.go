package figures

import (
	"strings"
	"testing"
)

// TestHealthHasNoSecrets: of the commands of an answer no more is told than of
// settings, and not too much of them.
func TestHealthHasNoSecrets(t *testing.T) {
	h := Health{Checks: []CheckStat{
		{Command: "go test ./..."},
		{Command: `curl -H "Authorization: Bearer s3cr3t"`},
		{Command: "TOKEN=s3cr3t make", Name: "unit"},
		{Command: strings.Repeat("a ", 1000)},
	}}
	h.Bound()
	for i, want := range []string{"go test ./...", "curl -H …", "TOKEN=…", strings.Repeat("a ", commandText/2) + "…"} {
		if got := h.Checks[i].Command; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
