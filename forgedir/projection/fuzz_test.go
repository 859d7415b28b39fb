package projection

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pfl-forge/pfl-forge/internal/strictyaml"
)

// FuzzIntent: what is read of an intent's file is read again of what is written
// of it, and a revision is one of a file as it is written here.
func FuzzIntent(f *testing.F) {
	f.Add([]byte("title: t\nbody: |\n  b\ntype: fix\nsource: human\nrisk: low\nstatus: proposed\n" +
		"created_at: 2026-01-02T03:04:05Z\nclarifications: []\nrevision: 3\n"))
	f.Add([]byte("title: t\nclarifications: [{question: q, answer: a}]\ngoal: {max_iterations: 2}\norigin: {system: s}\nrevision: 1\n"))
	f.Add([]byte("x\nrevision: +1\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if content, revision, ok := SplitRevision(data); ok && !bytes.Equal(withRevision(content, revision), data) {
			t.Errorf("%q was split into %q and %d", data, content, revision)
		}
		d, _, err := DecodeIntent(data)
		if err != nil {
			if list, ok := errors.AsType[strictyaml.Errors](err); !ok || len(list) == 0 || list[0].Reason == "" {
				t.Fatalf("error is %T: %v", err, err)
			}
			return
		}
		out, err := EncodeIntent(d)
		if err != nil {
			t.Fatalf("%+v cannot be written: %v", d, err)
		}
		again, _, err := DecodeIntent(out)
		if diff := cmp.Diff(d, again, cmpopts.EquateEmpty()); err != nil || diff != "" {
			t.Errorf("it changed on the way (%v): %s\n%s", err, diff, out)
		}
	})
}
