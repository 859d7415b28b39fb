package patch_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/internal/patch"
)

// lines returns the lines of a change that are told, one after the other,
// without those around them.
func lines(f *document.DiffFile) string {
	var b strings.Builder
	for _, h := range f.Hunks {
		for _, l := range h.Lines {
			if l.Op != " " {
				fmt.Fprintf(&b, "%s%s|", l.Op, l.Text)
			}
		}
	}
	return b.String()
}

// TestLeaveOutSpace: lines that are changed in white space alone are left out and counted;
// every other line is told, whatever it looks like, and so is one that joins two words.
func TestLeaveOutSpace(t *testing.T) {
	t.Parallel()
	for about, c := range map[string]struct {
		before, after string
		want          string
		hidden        int
	}{
		"indented":          {"a\n{\nb\nc\n}\nd\n", "a\n{\n\tb\n\t\tc\n}\nd\n", "", 4},
		"and wrapped":       {"a\nb\nc\nd\n", "a\nif x {\n\tb\n\tc\n}\nd\n", "+if x {|+}|", 4},
		"ends of lines":     {"a\nb\n", "a\r\nb  \r\n", "", 4},
		"runs of blanks":    {"a   b\n", "a\tb\n", "", 2},
		"two words are one": {"return no way\n", "return noway\n", "-return no way|+return noway|", 0},
		"one word is two":   {"notx\n", "not x\n", "-notx|+not x|", 0},
		"another blank":     {"a b\n", "a\u00a0b\n", "-a b|+a\u00a0b|", 0},
		"an unseen blank":   {"ab\n", "a\u200bb\n", "-ab|+a\u200bb|", 0},
		"a form feed":       {"a b\n", "a\fb\n", "-a b|+a\fb|", 0},
		"CR inside":         {"a b\n", "a\rb\n", "-a b|+a\rb|", 0},
		"no text":           {"\xff\n", " \xfe\n", "-\ufffd|+ \ufffd|", 0},
		"its end":           {"a\nb\n", "a\n b", "-b|+ b|", 0},
		"blank lines":       {"a\nb\n", "a\n\n\nb\n", "+|+|", 0},
		"a blank line":      {"a\n  \nb\n", "a\n\nb\n", "", 2},
		"another order":     {"a\nb\n", " b\n a\n", "-a|+ a|", 2},
		"among others":      {"one\ntwo\nthree\n", "  one\n2\n  three\n", "-two|+2|", 4},
		"all other":         {"a\n", "b\n", "-a|+b|", 0},
	} {
		files, err := change(t, "b", map[string]string{"f": "-" + c.before}, map[string]string{"f": "-" + c.after}).Files(nil)
		if err != nil || len(files) != 1 {
			t.Fatalf("%s: %d files, %v", about, len(files), err)
		}
		added, deleted := files[0].Added, files[0].Deleted
		hidden := patch.LeaveOutSpace(files)
		f := &files[0]
		if got := lines(f); got != c.want || hidden != c.hidden || f.Hidden != c.hidden {
			t.Errorf("%s: %q with %d and %d hidden, want %q with %d", about, got, hidden, f.Hidden, c.want, c.hidden)
		}
		if told := strings.Count(c.want, "|"); f.Added != added || f.Deleted != deleted || told+hidden != added+deleted {
			t.Errorf("%s: +%d -%d, of which %d are told and %d hidden", about, f.Added, f.Deleted, told, hidden)
		}
		if c.want == "" && len(f.Hunks) > 0 {
			t.Errorf("%s: there are hunks: %+v", about, f.Hunks)
		}
	}
}

// TestLeaveOutSpacePlaces: of a file that is indented as a whole there is left
// what is around the lines that are told, where they are on either side.
func TestLeaveOutSpacePlaces(t *testing.T) {
	t.Parallel()
	var before, after strings.Builder
	for i := range 100 {
		fmt.Fprintf(&before, "line %d\n", i+1)
		if fmt.Fprintf(&after, "\tline %d\n", i+1); i == 20 || i == 79 {
			after.WriteString("\tnew\n")
		}
	}
	files, err := change(t, "b", map[string]string{"f": "-" + before.String()}, map[string]string{"f": "-" + after.String()}).Files(nil)
	if err != nil {
		t.Fatal(err)
	}
	hidden := patch.LeaveOutSpace(files)
	got := ""
	for _, h := range files[0].Hunks {
		got += fmt.Sprintf("@@ -%d,%d +%d,%d @@ ", h.OldStart, h.OldLines, h.NewStart, h.NewLines)
		for _, l := range h.Lines {
			got += fmt.Sprintf("%s%d/%d ", l.Op, l.Old, l.New)
		}
	}
	const want = "@@ -19,6 +19,7 @@  19/19  20/20  21/21 +0/22  22/23  23/24  24/25 @@ -78,6 +79,7 @@  78/79  79/80  80/81 +0/82  81/83  82/84  83/85 "
	if got != want || hidden != 200 {
		t.Errorf("%d hidden:\n%s\nwant\n%s", hidden, got, want)
	}
}
