package analyzer

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge"
)

func TestExisting(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(
		os.MkdirAll(filepath.Join(dir, "sub"), 0o700),
		os.WriteFile(filepath.Join(dir, "a.go"), nil, 0o600),
		os.WriteFile(filepath.Join(dir, "odd:1"), nil, 0o600),
		os.Symlink("/etc", filepath.Join(dir, "out")),
	); err != nil {
		t.Fatal(err)
	}
	var list []forge.Evidence
	for _, ref := range []string{
		"a.go", "a.go:1", "a.go:1-20", "a.go:1:5", "a.go#L1", "a.go#L1-L20", "sub", "sub/", "odd:1", // are there
		"", "b.go", "a.go:x", "sub/a.go", "../a.go", "/etc/passwd", "out/passwd", "a.go/b", ":1",
	} {
		list = append(list, forge.Evidence{Type: forge.EvidenceFile, Ref: ref})
	}
	want := append([]forge.Evidence{}, list[:9]...)
	list = append(list, list[0], forge.Evidence{Type: forge.EvidenceSkill, Ref: "b.go"})
	want = append(want, forge.Evidence{Type: forge.EvidenceSkill, Ref: "b.go"})
	if diff := cmp.Diff(want, existing(dir, list)); diff != "" {
		t.Error(diff)
	}
}
