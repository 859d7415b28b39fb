package transcript

import (
	"bytes"
	"compress/gzip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge/bus/objects"
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

// FuzzWhole: a stored transcript, which any worker may have written, is read up
// to its bound, or is none.
func FuzzWhole(f *testing.F) {
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	if _, err := zip.Write(bytes.Repeat([]byte("a line\n"), 1000)); err != nil {
		f.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		f.Fatal(err)
	}
	f.Add(`{"left_out":1}`, out.Bytes())
	f.Add(`{"left_out":-1}`, out.Bytes()[:40])
	f.Add(`null`, []byte("\x1f\x8b"))
	f.Fuzz(func(t *testing.T, notes string, content []byte) {
		w, err := unpack(&objects.Object{About: map[string]string{aboutKey: notes}, Content: content})
		if (w == nil) == (err == nil) || err == nil && len(w.text) > MaxWhole+MaxBytes {
			t.Errorf("%v", err)
		}
	})
}
