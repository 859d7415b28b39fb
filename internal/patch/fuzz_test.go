package patch

import (
	"bytes"
	"compress/gzip"
	"errors"
	"testing"

	"github.com/pfl-forge/pfl-forge/bus/objects"
	"github.com/pfl-forge/pfl-forge/internal/patchid"
)

// FuzzUnpack: a stored change, which any worker may have written, is the one
// that was asked for, or is said to prove nothing, or is refused.
func FuzzUnpack(f *testing.F) {
	const text = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"
	zipped := func(text string) []byte {
		var out bytes.Buffer
		zip := gzip.NewWriter(&out)
		if _, err := zip.Write([]byte(text)); err != nil {
			f.Fatal(err)
		}
		if err := zip.Close(); err != nil {
			f.Fatal(err)
		}
		return out.Bytes()
	}
	want := About{Base: "b", Head: "h", PatchID: patchid.Of([]byte(text))}
	f.Add(`{"base":"b","head":"h","patch_id":"`+want.PatchID+`"}`, zipped(text))
	f.Add(`{"base":"b","head":"h","patch_id":"`+want.PatchID+`"}`, zipped(text+"+c\n"))
	f.Add(`{"base":"b","head":"h","patch_id":"`+want.PatchID+`","left_out":1}`, zipped(""))
	f.Add(`[]`, []byte("\x1f\x8b"))
	f.Fuzz(func(t *testing.T, about string, content []byte) {
		p, err := unpack(&objects.Object{About: map[string]string{aboutKey: about}, Content: content}, want)
		switch {
		case err != nil && !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrOther):
			t.Error(err)
		case err == nil && p.Proves() && patchid.Of(p.Text) != want.PatchID:
			t.Errorf("%q is taken for the change", p.Text)
		}
	})
}
