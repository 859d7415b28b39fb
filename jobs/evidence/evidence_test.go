package evidence_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent/prompt"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/gittest"
	"github.com/pfl-forge/pfl-forge/git/objects"
	"github.com/pfl-forge/pfl-forge/git/store"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/jobs/evidence"
)

// hostile is a repository whose branch change has what citations can go wrong on.
func hostile(t *testing.T) *evidence.Judged {
	t.Helper()
	r := gittest.New(t, map[string]string{
		"cart.go":    "package cart\n\n// Total adds up.\nfunc Total() int {\n\treturn old\n}\n",
		"legacy.txt": "kept for the legacy importer\nsecond line\n",
		"keep/a.txt": "a line that stays as it is\n",
		"list.md":    "# The list\n",
	})
	base := r.Head("main")
	r.Git("checkout", "-q", "-b", "change")
	r.Write("count.txt", "12\n")
	r.Write("braces.txt", "{\n}\n\n")
	r.Git("rm", "-q", "legacy.txt")
	r.Write("cart.go", "package cart\n\n// Total adds up.\nfunc Total() int {\n\tsum := 0\n\tsum += price\n\treturn sum\n}\n")
	r.Write("list.md", "# The list\n- first entry of it\n")
	r.Write("bin.dat", "text with a\x00NUL\n")
	r.Write("latin.txt", "caf\xe9 au lait\n")
	r.Write("crlf.txt", "ends with both\r\nand this too\r\n")
	r.Write("large.txt", strings.Repeat("a line of a large file\n", 400_000))
	r.Write("odd:1.txt", "a file with a colon\n")
	r.Write("日本.txt", "合計を返す\n")
	if err := os.Symlink("cart.go", filepath.Join(r.Dir, "link.go")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("keep", filepath.Join(r.Dir, "linked")); err != nil {
		t.Fatal(err)
	}
	r.Git("add", "-A")
	r.Git("update-index", "--add", "--cacheinfo", "160000,"+string(base)+",module")
	r.Git("commit", "-q", "-m", "change")
	head := r.Head("change")
	tree := r.Git("rev-parse", string(head)+"^{tree}")
	tree = strings.TrimSpace(tree)
	st, err := store.OpenLocal(t.Context(), store.LocalConfig{Path: r.Dir})
	if err != nil {
		t.Fatal(err)
	}
	return &evidence.Judged{Store: st, Base: base, Head: head, Runs: []forge.CheckRun{
		{ID: "r1", Name: "tests", Command: "go test ./...", Tree: tree, Passed: true, Output: "ok  \tcart\t0.1s\n"},
		{ID: "r2", Name: "lint", Command: "lint", Tree: tree, ExitCode: 3},
		{ID: "r3", Name: "old", Command: "go vet", Tree: strings.Repeat("1", 40), Passed: true},
		{ID: "r4", Name: "flaky", Command: "flaky", Tree: tree, Passed: true},
		{ID: "r5", Name: "flaky", Command: "flaky", Tree: tree},
	}}
}

// one resolves one citation of a claim about a text.
func one(t *testing.T, j *evidence.Judged, about, kind, ref, quote string) forge.Citation {
	t.Helper()
	got, err := j.Resolve(t.Context(), []forge.Claim{{
		Text: about, Evidence: []forge.Citation{{Kind: forge.CitationKind(kind), Ref: ref, Quote: quote, Resolved: true, Unchanged: true}},
	}})
	if err != nil {
		t.Fatalf("%s %s: %v", kind, ref, err)
	}
	return got[0].Evidence[0]
}

func TestResolve(t *testing.T) {
	j := hostile(t)
	const changed, unchanged = "", "unchanged"
	about := "No mention of FIXME is left, and obsolete.txt is gone"
	for _, tt := range []struct{ kind, ref, quote, want string }{
		{"file", "cart.go:5", "sum := 0", changed},
		{"file", "cart.go:5", "\tsum := 0  \n", changed},
		{"file", "cart.go:5-7", "sum := 0\n  sum += price\nreturn sum", changed},
		{"file", "cart.go:5", "sum := 0\nsum += price", changed},
		{"file", "cart.go:1-8", "sum += price", changed},
		{"file", "cart.go:L5-L6", "sum += price", changed},
		{"file", "cart.go:3", "Total adds up", unchanged},
		{"file", "cart.go:4-5", "func Total() int {\nsum := 0", changed},
		{"file", "keep/a.txt:1", "a line that stays as it is", unchanged},
		{"file", "crlf.txt:1-2", "ends with both\nand this too", changed},
		{"file", "latin.txt:1", "au lait", changed},
		{"file", "latin.txt:1", "caf<0xE9> au lait", changed},
		{"file", "odd:1.txt:1", "a file with a colon", changed},
		{"file", "日本.txt:1", "合計", changed},
		{"diff", "cart.go:5", "sum := 0", changed},
		{"diff", "cart.go:5-6", "+\tsum := 0\n+\tsum += price", changed},
		{"diff", "cart.go:5", "-\treturn old", changed},
		{"diff", "list.md:2", "- first entry of it", changed},
		{"diff", "list.md:2", "+- first entry of it", changed},
		{"diff", "legacy.txt:1-2", "-kept for the legacy importer\n-second line", changed},
		{"diff", "bin.dat", "", changed},
		{"diff", "link.go", "", changed},
		{"diff", "module", "", changed},
		{"diff", "cart.go", "", "has lines; cite those that show it"},
		{"diff", "keep/a.txt", "", "does not touch keep/a.txt"},
		{"diff", "legacy.txt", "", "is no file that the change adds or changes"},
		{"diff", "none.go", "", "does not touch none.go"},
		{"diff", "keep", "", "does not touch keep"},
		{"diff", "count.txt:1", "12", changed},
		{"diff", "count.txt:1", "+12", changed},
		{"file", "count.txt:1", "12", changed},
		{"file", "braces.txt:1-2", "{\n}", changed},
		{"command", "tests", "", changed},
		{"command", "r1", "ok cart", "the quote is not in the output of r1"},
		{"command", "r1", "ok  \tcart", changed},
		{"command", "go test ./...", "", changed},
		{"absence", "legacy.txt", "", changed},
		{"absence", ".", "legacy importer", changed},
		{"absence", "cart.go", "return old", changed},
		{"absence", ".", "FIXME", unchanged},
		{"absence", "obsolete.txt", "", unchanged},
		{"absence", "lib/obsolete.txt", "", unchanged},

		{"file", "cart.go:5", "sum := 1", "does not stand at cart.go:5, nor elsewhere"},
		{"file", "cart.go:6", "sum := 0", "it begins at line 5"},
		{"file", "cart.go:5", "return old", "nor elsewhere in the file"},
		{"file", "cart.go:5-6", "sum := 0\n\nsum += price", "nor elsewhere"},
		{"file", "cart.go:5", "sum  := 0", "nor elsewhere"},
		{"file", "cart.go:5-7", "sum := 0\nsum +=\nreturn sum", "nor elsewhere"},
		{"file", "cart.go:5-6", "sum :=\nsum += price", "nor elsewhere"},
		{"file", "cart.go:5-900", "sum := 0", "has 896 lines; name those that matter"},
		{"file", "cart.go:8-9", "return sum", "is past the end: the file has 8 lines"},
		{"file", "cart.go:90", "return sum", "is past the end: the file has 8 lines"},
		{"file", "cart.go:0", "return sum", "lines count from 1"},
		{"file", "cart.go:7-5", "return sum", "ends before it begins"},
		{"file", "cart.go", "return sum", "names no lines"},
		{"file", "", "return sum", "names no lines"},
		{"file", "cart.go:99999999999999999999", "return sum", "names no lines"},
		{"file", "cart.go:8", "}", "stands everywhere"},
		{"file", "count.txt:1", "1", "stands everywhere"},
		{"diff", "count.txt:1", "2", "stands everywhere"},
		{"file", "count.txt:1", "13", "stands everywhere"},
		{"file", "braces.txt:3", "", "the quote is empty"},
		{"file", "cart.go:7", "return", "stands everywhere"},
		{"file", "cart.go:2", "", "the quote is empty"},
		{"file", "cart.go:2", " \n\t", "the quote is empty"},
		{"file", "cart.go:5", strings.Repeat("x", 5000), "has 5000 bytes"},
		{"file", "none.go:1", "sum := 0", "none.go does not exist"},
		{"file", "legacy.txt:1", "kept for the legacy importer", "the change removes it"},
		{"file", "../cart.go:5", "sum := 0", "none in the repository"},
		{"file", "/etc/passwd:1", "root:x:0:0", "none in the repository"},
		{"file", "keep/../cart.go:5", "sum := 0", "none in the repository"},
		{"file", "./cart.go:5", "sum := 0", "none in the repository"},
		{"file", ".git/config:1", "[core]", "does not exist"},
		{"file", "link.go:5", "sum := 0", "link.go is a symbolic link, not a file"},
		{"file", "linked/a.txt:1", "a line that stays as it is", "does not exist"},
		{"file", "module:1", "sum := 0", "module is a submodule"},
		{"file", "module/cart.go:5", "sum := 0", "does not exist"},
		{"file", "keep:1", "a line that stays as it is", "keep is a directory"},
		{"file", "bin.dat:1", "text with a", "is binary"},
		{"file", "large.txt:1", "a line of a large file", "too large"},
		{"file", "cart.go:5 ", "sum := 0", changed},
		{"diff", "cart.go:3", "Total adds up", "not a line that the change adds"},
		{"diff", "cart.go:5", "return old", "nor elsewhere"},
		{"diff", "cart.go:5", "-\treturn older", "nor elsewhere"},
		{"diff", "cart.go:4-5", "func Total() int {\nsum := 0", "not a line that the change adds"},
		{"diff", "keep/a.txt:1", "a line that stays as it is", "not a line that the change adds"},
		{"diff", "cart.go:6", "-}", "stands everywhere"},
		{"diff", "none.go:1", "sum := 0", "does not exist"},
		{"command", "lint", "", "lint did not pass: it exited with 3"},
		{"command", "old", "", "ran on another tree"},
		{"command", "flaky", "", "flaky did not pass"},
		{"command", "coverage", "", "no command of the name or id"},
		{"command", "", "", "no command of the name or id"},
		{"absence", "cart.go", "", "it is there: cart.go is a file"},
		{"absence", "keep", "", "it is there: keep is a directory"},
		{"absence", "link.go", "", "it is there"},
		{"absence", ".", "sum += price", "it is there: cart.go has it"},
		{"absence", "cart.go", "sum := 0", "it is there: cart.go has it"},
		{"absence", "none.go", "sum := 0", "none.go does not exist, so that nothing in it is absent"},
		{"absence", "link.go", "sum := 7", "which is not searched"},
		{"absence", ".", "", "all of the repository is absent"},
		{"absence", ".", "two\nlines", "has to be one line"},
		{"absence", ".", "unheard of", "is not named by what was asked for"},
		{"absence", "unheard/of.txt", "", "is not named by what was asked for"},
		{"absence", "../x", "", "none in the repository"},
		{"absence", ".", "}", "stands everywhere"},
		{"absence", ".", "text with a", "it is there: bin.dat has it"},
		{"absence", ":(top)cart.go", "sum := 9", "does not exist"},
		{"witness", "cart.go:5", "sum := 0", `its kind is "witness"`},
		{"", "cart.go:5", "sum := 0", "its kind is"},
	} {
		c := one(t, j, about, tt.kind, tt.ref, tt.quote)
		name := fmt.Sprintf("%s %q %.40q", tt.kind, tt.ref, tt.quote)
		switch {
		case tt.want == changed || tt.want == unchanged:
			if !c.Resolved || c.Unchanged != (tt.want == unchanged) || c.Reason != "" {
				t.Errorf("%s: got %+v, want it %s", name, c, tt.want)
			}
		case c.Resolved || c.Unchanged || !strings.Contains(c.Reason, tt.want):
			t.Errorf("%s: got %+v, want %q", name, c, tt.want)
		}
	}
}

// Where nothing was changed there is no diff, and all that is there was there before.
func TestResolveWithoutAChange(t *testing.T) {
	j := hostile(t)
	j.Base = j.Head
	if c := one(t, j, "", "diff", "cart.go:5", "sum := 0"); c.Resolved || !strings.Contains(c.Reason, "there is no diff") {
		t.Errorf("got %+v", c)
	}
	if c := one(t, j, "", "file", "cart.go:5", "sum := 0"); !c.Resolved || !c.Unchanged {
		t.Errorf("got %+v", c)
	}
	if c := one(t, j, "no legacy.txt", "absence", "legacy.txt", ""); !c.Resolved || !c.Unchanged {
		t.Errorf("got %+v", c)
	}
}

// A claim with very many pieces is not looked up to the end, and none counts unseen.
func TestResolveIsBounded(t *testing.T) {
	j := hostile(t)
	claim := forge.Claim{Number: 1, Met: true, Confidence: 1, Text: "x"}
	for range 100 {
		claim.Evidence = append(claim.Evidence, forge.Citation{Kind: forge.CitationFile, Ref: "cart.go:5", Quote: "sum := 0"})
	}
	got, err := j.Resolve(t.Context(), []forge.Claim{claim})
	if err != nil || !got[0].Evidence[19].Resolved || got[0].Evidence[20].Resolved || claim.Evidence[0].Resolved {
		t.Errorf("%v: got %+v", err, got[0].Evidence[19:21])
	}
}

// Whatever a file has: a quote of some of its lines resolves with any indentation, and does not
// once a letter of it is another.
func TestQuotesOfFilesResolve(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	words := []string{"alpha", "beta()", "{", "}", "", "  gamma := 1", "\tdelta", "+ plus", "- minus", "日本語", "@@ -1 +1 @@", "caf\xe9"}
	for range testsize.Of(20, 300) {
		var lines []string
		for range 1 + rng.IntN(30) {
			lines = append(lines, strings.TrimRight(words[rng.IntN(len(words))]+" "+words[rng.IntN(len(words))], " "))
		}
		from := rng.IntN(len(lines))
		to := min(from+rng.IntN(4), len(lines)-1)
		j := inMemory(strings.Join(lines, "\n") + "\n")
		quote := ""
		for _, l := range lines[from : to+1] {
			quote += strings.Repeat(" ", rng.IntN(4)) + strings.ToValidUTF8(strings.TrimSpace(l), "\uFFFD") + strings.Repeat("\t", rng.IntN(2)) + "\n"
		}
		ref := fmt.Sprintf("f.txt:%d-%d", from+1, to+1)
		c := one(t, j, "", "file", ref, quote)
		if !c.Resolved && !strings.Contains(c.Reason, "stands everywhere") {
			t.Errorf("%q of %q at %s: %s", quote, lines, ref, c.Reason)
		}
		if c := one(t, j, "", "file", ref, strings.Replace(quote, "a", "ä", 1)+"x"); c.Resolved {
			t.Errorf("%q of %q at %s resolves", quote, lines, ref)
		}
	}
}

// FuzzResolve looks for a citation that resolves although its quote is not in the file.
func FuzzResolve(f *testing.F) {
	f.Add("one line\n\ttwo\n", "f.txt:1-2", "one line\ntwo", "file")
	f.Add("a\xff\x00b", "f.txt:1", "a", "diff")
	f.Add("x", "..:1", "+x", "absence")
	f.Add("", ":", "-", "command")
	f.Fuzz(func(t *testing.T, content, ref, quote, kind string) {
		j := inMemory(content)
		c := one(t, j, "", kind, ref, quote)
		if !c.Resolved {
			if c.Reason == "" {
				t.Errorf("no reason: %+v", c)
			}
			return
		}
		if kind == "absence" || kind == "command" {
			return
		}
		if !strings.HasPrefix(strings.TrimSpace(ref), "f.txt:") {
			t.Errorf("%q is not in %q", ref, content)
		}
		plain := strings.ToValidUTF8(content, "\uFFFD") + prompt.Visible(content)
		for line := range strings.SplitSeq(strings.TrimSpace(quote), "\n") {
			line = strings.TrimSpace(line)
			if !strings.Contains(plain, line) && !strings.Contains(plain, strings.TrimSpace(strings.TrimLeft(line, "+-"))) {
				t.Errorf("%q is not in %q", line, content)
			}
		}
	})
}

// inMemory returns a tree with the file f.txt, all of which the change adds.
func inMemory(content string) *evidence.Judged {
	return &evidence.Judged{Store: memory(content), Base: git.OID(strings.Repeat("1", 40)), Head: git.OID(strings.Repeat("2", 40))}
}

// memory is a store whose head has one file, which its base does not have.
type memory string

func (m memory) ReadFile(_ context.Context, commit git.OID, p git.Path, _ int) ([]byte, error) {
	if p != "f.txt" || commit[0] == '1' {
		return nil, git.ErrNotFound
	}
	return []byte(m), nil
}

func (m memory) Entry(_ context.Context, commit git.OID, p git.Path) (objects.EntryKind, error) {
	if p != "f.txt" || commit[0] == '1' {
		return objects.EntryNone, nil
	}
	return objects.EntryFile, nil
}

func (m memory) ChangedLines(_ context.Context, _, _ git.OID, p git.Path) (added, removed []objects.Lines, err error) {
	if p == "f.txt" {
		added = []objects.Lines{{From: 1, To: 1 + strings.Count(string(m), "\n")}}
	}
	return added, nil, nil
}

func (m memory) Differs(_ context.Context, _, _ git.OID, p git.Path) (bool, error) {
	return p == "f.txt", nil
}

func (m memory) Contains(_ context.Context, commit git.OID, _ git.Path, text string) (string, error) {
	if commit[0] == '2' && strings.Contains(string(m), text) {
		return "f.txt", nil
	}
	return "", nil
}

func (m memory) Tree(context.Context, git.OID) (git.OID, error) { return "3", nil }

var _ evidence.Store = (*objects.Database)(nil)
