package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/internal/testsize"
)

// appending is a project in which every intent appends its line to one file.
var appending = map[string]string{
	"log.txt": "begin\n",
	"pfl-forge.yaml": `base_branch: main
parallel_workers: 4
verify:
  - test -s log.txt
recipes:
  append:
    params: [{name: LINE, question: "Which line?"}]
    run: echo "$LINE" >> log.txt
    check: grep -qx "$LINE" log.txt
`,
}

// appendDrafts writes n drafts, each of which appends a line of its own.
func appendDrafts(r *repo, n int) []string {
	lines := []string{"begin"}
	for i := range n {
		line := fmt.Sprintf("line-%02d", i)
		lines = append(lines, line)
		r.draft(fmt.Sprintf("append-%02d", i), "recipe: append\nwith: {LINE: "+line+"}")
	}
	return lines
}

// checkAppended makes sure that each line is there once and came by one commit.
func checkAppended(t *testing.T, r *repo, file string, lines []string) {
	t.Helper()
	got := strings.Fields(file)
	slices.Sort(got)
	slices.Sort(lines)
	if !slices.Equal(got, lines) {
		t.Errorf("log.txt has %v; want each of %v once", got, lines)
	}
	if n := len(r.subjects()); n != len(lines) {
		t.Errorf("main has %d commits; want %d: one for each line", n, len(lines))
	}
}

// Twenty intents that change one place conflict with each other. All merge, each
// once, and none is handed to a person.
func TestTwentyIntentsOneFile(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	const intents = 20
	r := newRepo(t, appending)
	lines := appendDrafts(r, intents)
	r.must(0, "run")
	checkAppended(t, r, r.read("log.txt"), lines)
	if out := r.git("status", "--porcelain"); strings.Contains(out, "log.txt") {
		t.Errorf("the checked-out files did not follow main:\n%s", out)
	}
	// Each is made once, and once more at most: the work grows with the number of
	// intents, not with its square.
	for i := range intents {
		work := r.read(fmt.Sprintf(".forge/work/append-%02d-001.yaml", i))
		if !strings.Contains(work, "attempts: 1\n") && !strings.Contains(work, "attempts: 2\n") {
			t.Errorf("intent %d was implemented more than twice:\n%s", i, work)
		}
	}
	r.tidy()
}
