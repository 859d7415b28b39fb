package patch_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/objects"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/internal/patch"
	"github.com/pfl-forge/pfl-forge/internal/patchid"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// diff returns the patch that git makes of two versions of a folder, a path with its
// content each; "x" before a content stands for an executable file, "l" for a link.
func diff(t *testing.T, before, after map[string]string) []byte {
	t.Helper()
	dir := t.TempDir()
	git := func(args ...string) []byte {
		t.Helper()
		c := exec.Command("git", append([]string{"-C", dir}, args...)...)
		c.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
		out, err := c.Output()
		if err != nil {
			t.Fatalf("git %q: %v", args, err)
		}
		return out
	}
	git("init", "-q")
	tree := func(files map[string]string) string {
		git("read-tree", "--empty")
		for name, content := range files {
			at := filepath.Join(t.TempDir(), "blob")
			if err := os.WriteFile(at, []byte(content[1:]), 0o600); err != nil {
				t.Fatal(err)
			}
			oid := strings.TrimSpace(string(git("hash-object", "-w", at)))
			mode := map[byte]string{'x': "100755", 'l': "120000", '-': "100644"}[content[0]]
			git("update-index", "--add", "--cacheinfo", mode+","+oid+","+name)
		}
		return strings.TrimSpace(string(git("write-tree")))
	}
	return git("diff-tree", "-r", "-p", "--full-index", "--no-renames", "--diff-algorithm=myers", "-U3", tree(before), tree(after))
}

// stored returns what a writer makes of a text that comes in pieces of n bytes.
func stored(text []byte, n int) *patch.Patch {
	w := &patch.Writer{}
	for len(text) > 0 {
		k := min(n, len(text))
		_, _ = w.Write(text[:k])
		text = text[k:]
	}
	return w.Patch()
}

// TestFiles: what a reader gets of every kind of change, however the text
// comes, with names that nobody would choose.
func TestFiles(t *testing.T) {
	t.Parallel()
	names := []string{"a b", "\u00e4", "new\nline", "\x1b[31mred", "\u202egnp.exe", `back\slash`, `quo"te`, "tab\there", "diff --git a/x b/x", "x => y"}
	before := map[string]string{
		"mod": "-1\n2\n3\n4\n5\n", "gone": "-bye\n", "move": "-a\nb\n", "script": "-run\n", "bin": "-\x00one", "end": "-no end", "link": "lmod", "empty": "-",
		"many": "-" + strings.Repeat("x\n", 40),
	}
	after := map[string]string{
		"mod": "-1\n2\nthree\n4\n5\n", "moved/here": "-a\nb\n", "script": "xrun\n", "bin": "-\x00two", "end": "-no end\n", "link": "-mod",
		"new":  "-diff --git a/q b/q\n@@ -1 +1 @@\n",
		"many": "-first\n" + strings.Repeat("x\n", 40) + "last\n",
	}
	for _, name := range names {
		after[name] = "-x\n"
	}
	text := diff(t, before, after)
	var first []document.DiffFile
	for _, n := range []int{1 << 20, 1, 7, 4096} {
		p := stored(text, n)
		if !bytes.Equal(p.Text, text) || !p.Proves() {
			t.Fatalf("in pieces of %d: %q", n, p.Text)
		}
		files, err := p.Files([]string{"mod"})
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = files
		}
	}
	got := map[string]string{}
	for _, f := range first {
		got[f.Path] += fmt.Sprintf("%s %s>%s %d/%d", f.Status, f.OldMode, f.NewMode, f.Added, f.Deleted)
		if f.Binary {
			got[f.Path] += " binary"
		}
		if f.Planned != nil && *f.Planned {
			got[f.Path] += " planned"
		}
		if f.OldPath != "" {
			got[f.Path] += " from " + f.OldPath
		}
	}
	want := map[string]string{
		"mod": "modified 100644> 1/1 planned", "gone": "deleted 100644> 0/1", "moved/here": "renamed 100644>100644 0/0 from move",
		"script": "mode 100644>100755 0/0", "bin": "modified 100644> 0/0 binary", "end": "modified 100644> 1/1",
		"link": "deleted 120000> 0/1added >100644 1/0", "empty": "deleted 100644> 0/0", "new": "added >100644 2/0", "many": "modified 100644> 2/0",
	}
	for _, name := range names {
		want[name] = "added >100644 1/0"
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for _, f := range first {
		if f.Path == "mod" {
			lines := []document.DiffLine{
				{Op: " ", Old: 1, New: 1, Text: "1"},
				{Op: " ", Old: 2, New: 2, Text: "2"},
				{Op: "-", Old: 3, Text: "3"},
				{Op: "+", New: 3, Text: "three"},
				{Op: " ", Old: 4, New: 4, Text: "4"},
				{Op: " ", Old: 5, New: 5, Text: "5"},
			}
			if d := cmp.Diff([]document.DiffHunk{{OldStart: 1, OldLines: 5, NewStart: 1, NewLines: 5, Lines: lines}}, f.Hunks); d != "" {
				t.Error(d)
			}
		}
	}
}

// TestCut: a file that is too large is there by name and counts, and the patch
// proves nothing any more; the next file is whole.
func TestCut(t *testing.T) {
	t.Parallel()
	text := diff(t, map[string]string{"z": "-z\n"}, map[string]string{
		"big": "-" + strings.Repeat("0123456789\n", patch.MaxFile/8), "long": "-" + strings.Repeat("x", patch.MaxFile+1), "small": "-s\n", "z": "-Z\n",
	})
	for _, n := range []int{1 << 20, 5, 4096} {
		p := stored(text, n)
		files, err := p.Files(nil)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range files {
			got = append(got, fmt.Sprintf("%s %d/%d %d %t", f.Path, f.Added, f.Deleted, len(f.Hunks), f.Cut != ""))
		}
		want := []string{fmt.Sprintf("big %d/0 0 true", patch.MaxFile/8), "long 1/0 0 true", "small 1/0 1 false", "z 1/1 1 false"}
		if d := cmp.Diff(want, got); d != "" || p.Proves() {
			t.Error(d, p.Proves())
		}
	}
	w := &patch.Writer{Secret: func(s string) bool { return strings.Contains(s, "hunter2") }}
	_, _ = w.Write(diff(t, nil, map[string]string{"a": "-a\n", "key": "-hunter2\n", "z": "-z\n"}))
	files, err := w.Patch().Files(nil)
	if err != nil || len(files) != 3 || !strings.Contains(files[1].Cut, "secret") || files[1].Added != 1 || files[0].Cut+files[2].Cut != "" ||
		bytes.Contains(w.Patch().Text, []byte("hunter2")) {
		t.Error(files, err)
	}
	many := &patch.Writer{}
	for i := range 12_000 {
		_, _ = fmt.Fprintf(many, "diff --git a/%d b/%d\nold mode 100644\nnew mode 100755\n", i, i)
	}
	if p := many.Patch(); p.LeftOut != 2000 || p.Proves() {
		t.Error(p.LeftOut)
	}
}

// TestRead: what is read is the change that the journal names, or an error. Any
// worker may write to the store.
func TestRead(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	b := bustest.StartServer(t).Connect(t)
	to, a := forge.Key{Project: "shop", Intent: "fix"}, forge.Attempt{Task: "fix-001", Step: forge.StepImplement, Number: 1}
	p := stored(diff(t, map[string]string{"f": "-1\n"}, map[string]string{"f": "-2\n"}), 4096)
	p.About = patch.About{Base: "b", Head: "h", Tree: "t", PatchID: patchid.Of(p.Text)}
	if _, err := patch.Read(ctx, b.Objects, to, a, p.About); !errors.Is(err, bus.ErrNotFound) {
		t.Error(err)
	}
	if err := patch.Store(ctx, b.Objects, to, a, p); err != nil {
		t.Fatal(err)
	}
	got, err := patch.Read(ctx, b.Objects, to, a, p.About)
	if err != nil || cmp.Diff(p, got) != "" {
		t.Error(err, cmp.Diff(p, got))
	}
	for _, other := range []forge.Key{{Project: "other", Intent: "fix"}, {Project: "shop", Intent: "else"}} {
		if _, err := patch.Read(ctx, b.Objects, other, a, p.About); !errors.Is(err, bus.ErrNotFound) {
			t.Error(other, err)
		}
	}
	lie := *p
	lie.Text = bytes.ReplaceAll(p.Text, []byte("+2"), []byte("+3"))
	for what, wrong := range map[string]struct {
		put  *patch.Patch
		want patch.About
		err  error
	}{
		"other lines":   {&lie, p.About, patch.ErrOther},
		"another head":  {p, patch.About{Base: "b", Head: "other", PatchID: p.PatchID}, patch.ErrOther},
		"another base":  {p, patch.About{Base: "other", Head: "h", PatchID: p.PatchID}, patch.ErrOther},
		"another space": {&patch.Patch{About: p.About, Text: bytes.ReplaceAll(p.Text, []byte("+2"), []byte("+2 "))}, p.About, patch.ErrOther},
	} {
		if err := patch.Store(ctx, b.Objects, to, a, wrong.put); err != nil {
			t.Fatal(err)
		}
		if _, err := patch.Read(ctx, b.Objects, to, a, wrong.want); !errors.Is(err, wrong.err) {
			t.Errorf("%s: %v", what, err)
		}
	}
	// What is said to be cut cannot be compared, and never counts as proven.
	cut := lie
	cut.About, cut.Cut = p.About, []patch.Cut{{File: 1}}
	if err := patch.Store(ctx, b.Objects, to, a, &cut); err != nil {
		t.Fatal(err)
	}
	if got, err := patch.Read(ctx, b.Objects, to, a, p.About); err != nil || got.Proves() {
		t.Errorf("a forged cut: %v, %v", got, err)
	}
	for what, content := range map[string]*objects.Object{
		"no zip":   {About: map[string]string{"patch": `{}`}, Content: []byte("x")},
		"no about": {Content: []byte("x")},
	} {
		err := b.Objects.Update(ctx, objects.PatchName(to, a, p.PatchID), func(*objects.Object) (*objects.Object, error) { return content, nil })
		if err != nil {
			t.Fatal(err)
		}
		if _, err := patch.Read(ctx, b.Objects, to, a, p.About); !errors.Is(err, patch.ErrDamaged) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestNotGits: a text that git did not make is no change, and not one without files.
func TestNotGits(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"hello\n", "x\ndiff --git a/f b/f\n", "diff --git a/f b/f\n@@ -1 +1 @@\n?\n", "diff --git a/f b/f\n@@ -1,9 +1 @@\n-x\n"} {
		if files, err := (&patch.Patch{Text: []byte(text)}).Files(nil); !errors.Is(err, patch.ErrDamaged) {
			t.Errorf("%q: %v %v", text, files, err)
		}
	}
}
