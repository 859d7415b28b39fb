package concealed

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
)

// formulaText says in a line what formulasIn finds, and takes as long as the
// square of the text for it.
var formulaText = regexp.MustCompile("(?s)\\$\\$.+?\\$\\$|\\$`[^`]+`\\$|\\$[^\\s$](?:[^$\\n]*[^\\s$\\\\])?\\$|\\\\\\[.+?\\\\\\]|\\\\\\(.+?\\\\\\)")

// TestFormulasIn: each formula is found where a pattern finds it.
func TestFormulasIn(t *testing.T) {
	t.Parallel()
	const seed = 7
	r := rand.New(rand.NewPCG(seed, seed))
	letters := []string{"$", "$", "$$", `\`, `\(`, `\)`, `\[`, `\]`, "`", "a", "é", " ", "\n", "\xff"}
	matched := 0
	for range 200_000 {
		var b strings.Builder
		for range r.IntN(14) {
			b.WriteString(letters[r.IntN(len(letters))])
		}
		var want, got [][2]int
		for _, at := range formulaText.FindAllStringIndex(b.String(), -1) {
			want = append(want, [2]int(at))
		}
		if got = formulasIn([]byte(b.String())); len(got) != len(want) {
			t.Fatalf("in %q it finds %v, want %v", b.String(), got, want)
		}
		for i := range want {
			if got[i] != want[i] {
				t.Fatalf("in %q it finds %v, want %v", b.String(), got, want)
			}
		}
		matched += len(want)
	}
	if matched < 10_000 {
		t.Errorf("only %d formulas are compared", matched)
	}
}

// TestFormulasWithoutEnd: beginnings of formulas without an end, each before a
// formula, are looked through once.
func TestFormulasWithoutEnd(t *testing.T) {
	t.Parallel()
	const n = 2_000_000
	for _, part := range []string{`\(a $b$ `, `\[a $b$ `, "$`a $b$ "} {
		if found := formulasIn([]byte(strings.Repeat(part, n/len(part)))); len(found) != n/len(part) {
			t.Errorf("of %d times %q there are %d formulas", n/len(part), part, len(found))
		}
	}
}
