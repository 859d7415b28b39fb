package transcript

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// FuzzLines: of any file there are at most as many lines as it has, and each is read again as it is
// written.
func FuzzLines(f *testing.F) {
	f.Add([]byte(`{"at":"2026-01-02T03:04:05Z","project":"p","intent":"i","kind":"text","text":"a"}` + "\n" + `{"usage":{"cost_usd":1e308}}`))
	f.Add([]byte("null\n{\n[]\n{}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		lines := Parse(text)
		if len(lines) > bytes.Count(text, []byte("\n"))+1 {
			t.Errorf("%d lines of %q", len(lines), text)
		}
		for _, l := range lines {
			data := l.encode()
			if again := Parse(data); len(again) != 1 || !cmp.Equal(l, again[0]) || bytes.Count(data, []byte("\n")) != 1 {
				t.Errorf("%+v is written as %q", l, data)
			}
		}
	})
}
