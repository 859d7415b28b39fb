package patch_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/internal/patch"
)

// change returns the patch between two versions of a folder, on a base with a name.
func change(t *testing.T, base string, before, after map[string]string) *patch.Patch {
	t.Helper()
	p := stored(diff(t, before, after), 1<<20)
	p.Base = base
	return p
}

// told returns the lines of a comparison that one side has alone, one after the other.
func told(f *document.DiffFile) string {
	var b strings.Builder
	for _, h := range f.Hunks {
		for _, l := range h.Lines {
			if l.Since != "" {
				fmt.Fprintf(&b, "%s %s%s|", l.Since, l.Op, l.Text)
			}
		}
	}
	return b.String()
}

// TestSince: what two attempts do with the same files is told as it differs,
// and what is the same in both is counted.
func TestSince(t *testing.T) {
	t.Parallel()
	lines := func(change ...string) string {
		text := "-"
		for i := range 60 {
			for j := 0; j < len(change); j += 2 {
				if change[j] == fmt.Sprint(i) {
					text += change[j+1]
				}
			}
			text += fmt.Sprintf("line %d\n", i)
		}
		return text
	}
	base := map[string]string{
		"a": lines(), "moved": lines(), "gone": "-x\n", "bin": "-\x00one", "same bin": "-\x00",
		"mode": "-m\n", "raw": "-1\n", "type": "-t\n",
	}
	first := map[string]string{
		"a": lines("5", "dropped\n", "30", "both\n"), "moved": lines("10", "return nil\n"), "bin": "-\x00two", "same bin": "-\x00new",
		"mode": "xm\n", "raw": "-\xff\n", "type": "-t\n", "only first": "-1\n", "same": "-s\n", "end": "-e",
	}
	second := map[string]string{
		"a": lines("30", "both\n", "31", "new\n"), "moved": lines("40", "return nil\n"), "gone": "-x\n", "bin": "-\x00three", "same bin": "-\x00new",
		"mode": "-m\n", "raw": "-\xfe\n", "type": "lt", "only second": "-2\n", "same": "-s\n", "end": "-e\n",
	}
	files, same, err := change(t, "b", base, second).Since(change(t, "b", base, first), []string{"a"})
	if err != nil || same != 2 {
		t.Errorf("%d files are the same, want 2: %v", same, err)
	}
	got := map[string]string{}
	for i := range files {
		f := &files[i]
		got[f.Path] += strings.TrimSpace(fmt.Sprintf("%s +%d -%d %s", f.Since, f.Added, f.Deleted, told(f)))
		if f.Was != nil {
			got[f.Path] += fmt.Sprintf(" was %s %s %s", f.Was.Status, f.Was.OldMode, f.Was.NewMode)
		}
		if f.Planned == nil || *f.Planned != (f.Path == "a") {
			t.Errorf("%s is planned: %v", f.Path, f.Planned)
		}
	}
	for path, want := range map[string]string{
		"a":     "changed +1 -1 dropped +dropped|added +new|",
		"moved": "changed +1 -1 dropped +return nil|added +return nil|", // the same line elsewhere is another change
		"gone":  "dropped +0 -1 dropped -x|",
		"bin":   "changed +0 -0",
		"mode":  "dropped +0 -0",
		"raw":   "changed +1 -1 dropped +\ufffd|added +\ufffd|", // which look the same
		"type":  "added +0 -1", "only first": "dropped +0 -1 dropped +1|", "only second": "added +1 -0 added +2|",
		"end": "changed +1 -1 dropped +e|added +e|",
	} {
		if path == "type" {
			if !strings.HasPrefix(got[path], "added") || !strings.Contains(got[path], "added -t|") || !strings.Contains(got[path], "added +t|") {
				t.Errorf("%s: %s", path, got[path])
			}
		} else if got[path] != want {
			t.Errorf("%s: %s, want %s", path, got[path], want)
		}
		delete(got, path)
	}
	if len(got) > 0 {
		t.Errorf("different are also %v", got)
	}
}

// TestSinceOnAnotherBase: on another base the same lines elsewhere are the same
// change, and lines beside it that are others are told.
func TestSinceOnAnotherBase(t *testing.T) {
	t.Parallel()
	text := func(before, beside, more string) map[string]string {
		return map[string]string{"f": "-" + before + "1\n2\n" + beside + "\n" + more + "4\n5\n6\n"}
	}
	first := change(t, "b", text("", "3", ""), text("", "3", "new\n"))
	for about, c := range map[string]struct {
		now  *patch.Patch
		want string
	}{
		"moved down":       {change(t, "c", text("7\n8\n9\n0\n", "3", ""), text("7\n8\n9\n0\n", "3", "new\n")), ""},
		"another section":  {change(t, "c", text("prod:\n", "3", ""), text("prod:\n", "3", "new\n")), "dropped +new|added +new|"},
		"another context":  {change(t, "c", text("", "three", ""), text("", "three", "new\n")), "dropped  3|added  three|"},
		"another change":   {change(t, "c", text("", "3", ""), text("", "3", "newer\n")), "dropped +new|added +newer|"},
		"already on there": {change(t, "c", text("", "3", "new\n"), text("", "3", "new\nmore\n")), "dropped  1|dropped +new|added  new|added +more|"},
	} {
		files, same, err := c.now.Since(first, nil)
		switch {
		case err != nil:
			t.Errorf("%s: %v", about, err)
		case c.want == "" && (same != 1 || len(files) > 0):
			t.Errorf("%s: %+v", about, files)
		case c.want != "" && (len(files) != 1 || len(files) == 1 && !sameLines(told(&files[0]), c.want)):
			t.Errorf("%s: %+v", about, files)
		}
	}
}

// sameLines reports whether a text has every line of another one.
func sameLines(got, want string) bool {
	for l := range strings.SplitSeq(strings.Trim(want, "|"), "|") {
		if !strings.Contains(got, l+"|") {
			return false
		}
	}
	return true
}

// TestSinceHidesNothing: whatever two attempts do on one base or on two, for every line
// of the changes the comparison tells of as many more, and as many fewer, as there are.
func TestSinceHidesNothing(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	edit := func(files map[string]string, n int) map[string]string {
		after := map[string]string{}
		for path, text := range files {
			lines := strings.SplitAfter(strings.TrimPrefix(text, "-"), "\n")
			for range r.IntN(n) {
				at := r.IntN(len(lines))
				if r.IntN(2) == 0 && len(lines) > 1 {
					lines = append(lines[:at:at], lines[at+1:]...)
				} else {
					lines = append(lines[:at:at], append([]string{fmt.Sprintf("%d\n", r.IntN(6))}, lines[at:]...)...)
				}
			}
			if r.IntN(6) > 0 {
				after[path] = "-" + strings.Join(lines, "")
			}
		}
		after[fmt.Sprint("new", r.IntN(3))] = "-1\n2\n1\n"
		return after
	}
	count := func(files []document.DiffFile, placed bool, counts map[string]int, by func(*document.DiffLine) int) {
		for i := range files {
			for _, h := range files[i].Hunks {
				for j := range h.Lines {
					if l := &h.Lines[j]; !placed || l.Op != " " {
						counts[files[i].Path+l.Op+l.Text] += by(l)
					}
				}
			}
		}
	}
	for round := range 6 {
		base := map[string]string{}
		for f := range 3 {
			text := "-"
			for range r.IntN(60) {
				text += fmt.Sprintf("%d\n", r.IntN(8)) // few lines, so that most are there often
			}
			base[fmt.Sprint("f", f)] = text
		}
		placed := round%2 == 0
		other, name := base, "b"
		if !placed {
			other, name = edit(base, 6), "c"
		}
		first, second := change(t, "b", base, edit(base, 8)), change(t, name, other, edit(other, 8))
		files, _, err := second.Since(first, nil)
		if err != nil {
			t.Fatal(err)
		}
		want, got := map[string]int{}, map[string]int{}
		for p, sign := range map[*patch.Patch]int{first: -1, second: 1} {
			plain, err := plainFiles(p)
			if err != nil {
				t.Fatal(err)
			}
			count(plain, placed, want, func(*document.DiffLine) int { return sign })
		}
		count(files, placed, got, func(l *document.DiffLine) int { return map[string]int{"added": 1, "dropped": -1}[l.Since] })
		for line := range want {
			if want[line] != got[line] {
				t.Fatalf("round %d: %q is there %d times more, and told %d times: %+v", round, line, want[line], got[line], files)
			}
		}
	}
}

// plainFiles returns the files of a patch with all of their lines, also those
// of renamed ones: compared with nothing.
func plainFiles(p *patch.Patch) ([]document.DiffFile, error) {
	files, _, err := p.Since(&patch.Patch{About: patch.About{Base: p.Base}}, nil)
	return files, err
}

// TestSinceWithoutLines: what is not stored is not taken for the same.
func TestSinceWithoutLines(t *testing.T) {
	t.Parallel()
	base := map[string]string{"f": "-1\n"}
	cut := func(to string) *patch.Patch {
		w := &patch.Writer{Secret: func(text string) bool { return strings.Contains(text, "secret") }}
		_, _ = w.Write(diff(t, base, map[string]string{"f": "-" + to}))
		p := w.Patch()
		p.Base = "b"
		return p
	}
	files, same, err := cut("secret one\n").Since(cut("secret two\n"), nil)
	if err != nil || same != 0 || len(files) != 1 || files[0].Since != "unknown" || !strings.Contains(files[0].Cut, "is not known") {
		t.Errorf("%+v, %d are the same, %v", files, same, err)
	}
	files, _, err = cut("2\n").Since(cut("secret\n"), nil)
	if err != nil || len(files) != 1 || files[0].Since != "unknown" || !strings.Contains(told(&files[0]), "added +2|") {
		t.Errorf("%+v, %v", files, err)
	}
}
