package implementer

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/git/gittest"
	"github.com/pfl-forge/pfl-forge/jobs/repotest"
)

// lands commits a file on the base branch, and returns the short name of the commit.
func (w *world) lands(file, subject string) string {
	w.t.Helper()
	w.repo.Write(file, subject+"\n")
	w.repo.Git("add", "-A")
	w.repo.Git("commit", "-q", "-m", subject)
	return strings.TrimSpace(w.repo.Git("rev-parse", "HEAD"))[:12]
}

// An agent is told what was merged near its task's files since they were
// analyzed: the files themselves first, then what is beside them, and nothing
// that the analysis could read, that or that is far away.
func TestMergedNeighboursAreTold(t *testing.T) {
	t.Parallel()
	l := &listener{}
	r := gittest.New(t, map[string]string{"pfl-forge.yaml": settings, "a.txt": "a\n", "cart/sum.go": "1\n"})
	w := worldOn(t, r, repotest.Local(t, r.Dir, l), bustest.Start(t))
	w.lands("cart/sum.go", "Before the analysis")
	analyzed := strings.TrimSpace(r.Git("rev-parse", "HEAD"))
	exact := w.lands("cart/sum.go", "Round sums\tand\x1b[2J more")
	w.lands("mail/send.go", "Far away")
	w.lands("README.md", "At the root")
	beside := w.lands("cart/tax.go", "Add a tax")

	c := command(forge.StepImplement, 1)
	c.Task.RelevantFiles = []string{"a.txt", "cart/sum.go"}
	input(&c).Analyzed = analyzed
	first := w.implemented(c)
	said := l.told[0]
	if i, j := strings.Index(said, exact), strings.Index(said, beside); i < 0 || j < i {
		t.Errorf("the changes %s and %s are not told in this order:\n%s", exact, beside, said)
	}
	for _, not := range []string{"Before the analysis", "Far away", "At the root", "\x1b", "README.md"} {
		if strings.Contains(said, not) {
			t.Errorf("told of %q:\n%s", not, said)
		}
	}
	if first.Commits != 2 {
		t.Errorf("got %+v", first)
	}

	for name, analyzed := range map[string]string{"unknown": "", "the base itself": first.Base, "gone": strings.Repeat("1", 40), "no commit": "-x"} {
		c := of(forge.IntentID("other"), command(forge.StepImplement, 1))
		c.Task.RelevantFiles, input(&c).Analyzed = []string{"cart/sum.go"}, analyzed
		w.implemented(c)
		if said := l.told[len(l.told)-1]; strings.Contains(said, "What was merged since") {
			t.Errorf("%s: told\n%s", name, said)
		}
	}
}

// What is told of merged changes is bounded: the newest of the nearest.
func TestMergedNeighboursAreBounded(t *testing.T) {
	t.Parallel()
	l := &listener{}
	r := gittest.New(t, map[string]string{"pfl-forge.yaml": settings, "cart/sum.go": "1\n"})
	w := worldOn(t, r, repotest.Local(t, r.Dir, l), bustest.Start(t))
	analyzed := strings.TrimSpace(r.Git("rev-parse", "HEAD"))
	var names []string
	for i := range maxLookedAt + 2 {
		names = append(names, w.lands("cart/sum.go", fmt.Sprint("Change ", i)))
	}
	c := command(forge.StepImplement, 1)
	c.Task.RelevantFiles, input(&c).Analyzed = []string{"cart"}, analyzed
	w.implemented(c)
	var told []string
	for _, name := range slices.Backward(names) {
		if strings.Contains(l.told[0], name) {
			told = append(told, name)
		}
	}
	slices.Reverse(told)
	if want := names[len(names)-maxNeighbours:]; !slices.Equal(told, want) {
		t.Errorf("told of %q, want %q", told, want)
	}
}
