package console

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/pfl-forge/pfl-forge/services/gateway/tokens"
)

// TestDownloadIsWholeOrFails: a browser that got a part of a file is told that it failed, and one that got nothing is shown why.
func TestDownloadIsWholeOrFails(t *testing.T) {
	c := New(Config{Log: slog.New(slog.DiscardHandler)})
	for name, lines := range map[string]int{"in the middle": 3, "at the beginning": 0} {
		failed := error(nil)
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			d := download{v: &visit{console: c, w: w, r: r, token: &tokens.Token{}}, name: "a.jsonl"}
			for range lines {
				if err := d.line("x"); err != nil {
					t.Error(err)
				}
			}
			failed = d.failed(errors.New("the role was taken away"))
		}))
		resp, err := http.Get(s.URL)
		if err == nil {
			_, err = io.ReadAll(resp.Body)
			_ = resp.Body.Close()
		}
		s.Close()
		if cut := err != nil; cut != (lines > 0) || (failed != nil) != (lines == 0) {
			t.Errorf("%s: %v, %v", name, err, failed)
		}
	}
}
