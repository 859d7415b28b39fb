package projection

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/pfl-forge/pfl-forge/forgedir/disk"
)

// Lines that do not count any more go when the index is opened, and no others.
func TestIndexIsCompacted(t *testing.T) {
	d, err := disk.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	d.Flush = func(*os.File) error { return nil }
	x, err := openIndex(d)
	if err != nil {
		t.Fatal(err)
	}
	for range 600 {
		if err := x.add(false, indexLine{Intent: "x", Seq: 1}, indexLine{Path: "intents/x.yaml", SHA256: disk.DigestOf(nil).String()}); err != nil {
			t.Fatal(err)
		}
	}
	project := uint64(9)
	if err := x.add(true, indexLine{Intent: "fix-login", Seq: 7}, indexLine{Project: &project}); err != nil {
		t.Fatal(err)
	}
	if err := x.close(); err != nil {
		t.Fatal(err)
	}
	if x, err = openIndex(d); err != nil {
		t.Fatal(err)
	}
	if x.lines > 100 || x.seqs["fix-login"] != 7 || x.seqs["x"] != 1 || x.project != 9 || !x.ours("intents/x.yaml", disk.DigestOf(nil)) {
		t.Errorf("%d lines, %v", x.lines, x.seqs)
	}
	if err := x.close(); err != nil {
		t.Fatal(err)
	}
}

// Lines are read as the text of JSON that they are, also those that take the short way.
func TestPlainLines(t *testing.T) {
	sum := disk.DigestOf(nil).String()
	plain := 0
	for _, line := range []string{
		`{"path":"intents/fix-login.yaml","sha256":"` + sum + `"}`,
		`{"path":"","sha256":"` + sum + `"}`,
		`{"path":"a\u003cb","sha256":"` + sum + `"}`, `{"path":"ä","sha256":"` + sum + `"}`, `{"path":"a` + "\x00" + `","sha256":"` + sum + `"}`,
		`{"path":"a","sha256":"` + sum[1:] + `"}`, `{"path":"a","sha256":"` + sum + `","seq":1}`, `{"path":"a","seq":1,"sha256":"` + sum + `"}`,
		`{"path":"a","sha256":"` + sum[1:] + `\"}`, `{"path":"a"}`, `{"intent":"x","seq":7}`, `{"path":"a","sha256":"` + sum, "",
	} {
		for _, end := range []string{"\n", ""} {
			var want indexLine
			bad := json.Unmarshal([]byte(line), &want) != nil || end == ""
			got, short := plainLine([]byte(line + end))
			if !short {
				continue
			}
			plain++
			if bad || got != want {
				t.Errorf("%q is read as %+v; want %+v, bad %t", line, got, want, bad)
			}
		}
	}
	if plain != 2 {
		t.Errorf("%d lines take the short way, want 2", plain)
	}
}
