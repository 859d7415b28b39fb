package download

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestDownloadIsWholeOrFails: a browser that got a part of a file is told that
// it failed, and one that got nothing is shown why.
func TestDownloadIsWholeOrFails(t *testing.T) {
	for name, lines := range map[string]int{"in the middle": 3, "at the beginning": 0} {
		failed, told := error(nil), false
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			d := File{To: w, Name: "a.jsonl"}
			for range lines {
				if err := d.Line("x"); err != nil {
					t.Error(err)
				}
			}
			failed = d.Failed(errors.New("the role was taken away"), func() { told = true })
		}))
		resp, err := http.Get(s.URL)
		if err == nil {
			_, err = io.ReadAll(resp.Body)
			_ = resp.Body.Close()
		}
		s.Close()
		if cut := err != nil; cut != (lines > 0) || told != cut || (failed != nil) != (lines == 0) {
			t.Errorf("%s: %v, %v", name, err, failed)
		}
	}
}
