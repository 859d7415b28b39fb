package rest_test

import (
	"encoding/base64"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/rest"
)

// TestFile: only a file is one, whatever a forge answers in its place.
func TestFile(t *testing.T) {
	text := base64.StdEncoding.EncodeToString([]byte("rules: []"))
	for answer, want := range map[string]string{
		`{"type": "file", "encoding": "base64", "content": "` + text[:4] + `\n` + text[4:] + `\n"}`: "rules: []",
		`{"encoding": "base64", "content": "` + text + `"}`:                                         "rules: []",
		`{"encoding": "base64", "content": ""}`:                                                     "",
		`[{"type": "file", "encoding": "base64", "content": "` + text + `"}]`:                       "-",
		`{"type": "symlink", "encoding": "base64", "content": "` + text + `"}`:                      "-",
		`{"type": "submodule"}`:                                  "-",
		`{"type": "file", "encoding": "none", "content": ""}`:    "-",
		`{"type": "file", "encoding": "base64", "content": "%"}`: "-",
		`{"encoding": "base64", "content": "` + base64.StdEncoding.EncodeToString(make([]byte, forges.MaxFile+1)) + `"}`: "-",
		`{"encoding": "base64", "content": "` + strings.Repeat("A", 9<<20) + `"}`:                                        "-",
	} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(answer)) }))
		got, err := rest.File(wait.Context(t), clientOf(t, srv.URL), "/x")
		if want == "-" && !errors.Is(err, forges.ErrNoFile) || want != "-" && (err != nil || string(got) != want) {
			t.Errorf("%.80s is %.80q, %v", answer, got, err)
		}
		srv.Close()
	}
}
