package implementer

import (
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/git/gittest"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/jobs/repotest"
)

const (
	adoptedBranch = "bot/fix-001"
	ada           = "Ada <ada@example.com>"
)

// edited is a world with an origin in which a change is proposed, and a person
// has its branch checked out.
type edited struct {
	*world
	origin, person gittest.Repo
	change         *forge.Rebase
}

func newEdited(t *testing.T) *edited {
	t.Helper()
	r := gittest.New(t, map[string]string{"pfl-forge.yaml": settings, "b.txt": "b\n"})
	r.Commit("second", map[string]string{"second.txt": "2\n"})
	origin := gittest.At(t, r.Origin())
	w := &edited{world: worldOn(t, origin, repotest.Clone(t, origin.Dir), bustest.Start(t)), origin: origin, person: gittest.At(t, r.Dir)}
	w.change = w.ready("new.txt", "x")
	if got := w.merges(byPull(1, w.change)); got.Outcome != forge.MergeProposed {
		t.Fatalf("got %+v", got)
	}
	w.person.Git("fetch", "-q", origin.Dir, "+refs/heads/*:refs/remotes/o/*")
	w.person.Git("config", "user.name", "Ada")
	w.person.Git("config", "user.email", "ada@example.com")
	w.person.Git("checkout", "-q", "-b", "mine", "o/"+adoptedBranch)
	return w
}

// push puts what the person has onto the branch, and returns its name.
func (w *edited) push() string {
	w.t.Helper()
	w.person.Git("push", "-q", "--force", w.origin.Dir, "HEAD:refs/heads/"+adoptedBranch)
	return string(w.person.Head("HEAD"))
}

// adopt has a commit become the change.
func (w *edited) adopt(number int, a forge.Adoption) *forge.Rebase {
	w.t.Helper()
	c := command(forge.StepRebase, number)
	c.Task.Base, c.Task.Head = w.change.Base, w.change.Head
	c.Input = &forge.RebaseInput{Settle: true, Adopted: &a}
	r := w.imp.rebase(w.t.Context(), c, silent)
	if r.Failure() != nil {
		w.t.Fatalf("%s: %s", r.Failure().Reason, r.Failure().Message)
	}
	return forge.As[*forge.Rebase](r.Output)
}

// authors returns author and committer of a commit at the origin.
func (w *edited) authors(rev string) string {
	return strings.TrimSpace(w.origin.Git("log", "-1", "--format=%an <%ae>, %cn", rev))
}

// TestAdopt makes the commit of a person the change: verified on the tip, with their
// name as its author and our trailers, and pushed over exactly that commit. On a tip
// that moved it stays theirs, and what they push meanwhile is told and stays as it is.
func TestAdopt(t *testing.T) {
	t.Parallel()
	w := newEdited(t)
	w.person.Commit("and more\n\nForge-Approver: eve", map[string]string{"more.txt": "y\n"})
	commit := w.push()
	rb := w.adopt(2, forge.Adoption{Commit: commit, Branch: adoptedBranch})
	message := w.origin.Git("log", "-1", "--format=%B", rb.Head)
	if rb.Refusal != "" || rb.Author != ada || w.authors(rb.Head) != ada+", pfl-forge" || strings.Join(rb.Files, " ") != "more.txt new.txt" ||
		rb.PatchID == w.change.PatchID || rb.Verify == nil || !rb.Verify.Passed {
		t.Fatalf("got %+v by %s", rb, w.authors(rb.Head))
	}
	if !strings.HasPrefix(message, "Fix it\n") || !strings.Contains(message, "Forge-Task: fix-001") || strings.Contains(message, "eve") {
		t.Errorf("the message is %q", message)
	}
	if w.origin.Head(adoptedBranch) != w.person.Head("HEAD") {
		t.Fatal("the branch was moved before the change is reviewed")
	}
	if kept := w.refs(commit[:12]); len(kept) != 1 {
		t.Errorf("the commit is kept as %v", kept)
	}

	byAda := func(number int, over string) forge.Command {
		c := byPull(number, rb)
		c.Merge().Change.Facts = &forge.PullFacts{Adopted: &forge.Adoption{Commit: commit, Branch: adoptedBranch, Author: rb.Author}}
		in := c.Merge()
		in.Over = over
		c.Input = &in
		return c
	}
	if got := w.merges(byAda(3, "")); got.Outcome != forge.MergeEdited || got.Pull == nil || got.Pull.Head != commit {
		t.Fatalf("without the order to replace it: %+v", got)
	}
	w.person.Git("checkout", "-q", "main")
	w.person.Commit("somebody else", map[string]string{"b.txt": "c\n"})
	w.person.Git("push", "-q", w.origin.Dir, "main")
	got := w.merges(byAda(4, commit))
	if got.Outcome != forge.MergeProposed || w.authors(adoptedBranch) != ada+", pfl-forge" || string(w.origin.Head(adoptedBranch)) != got.Commit {
		t.Fatalf("got %+v by %s", got, w.authors(adoptedBranch))
	}
	w.person.Git("checkout", "-q", "mine")
	w.person.Commit("once more", map[string]string{"more.txt": "z\n"})
	next := w.push()
	if got := w.merges(byAda(5, commit)); got.Outcome != forge.MergeEdited || got.Pull.Head != next || string(w.origin.Head(adoptedBranch)) != next {
		t.Fatalf("beside a push: %+v", got)
	}
}

// TestAdoptAgain puts an adopted change on the tip once more: its author stays,
// whoever has added to it.
func TestAdoptAgain(t *testing.T) {
	t.Parallel()
	w := newEdited(t)
	w.person.Commit("more", map[string]string{"more.txt": "y\n"})
	rb := w.adopt(2, forge.Adoption{Commit: w.push(), Branch: adoptedBranch})
	w.change = rb
	if again := w.adopt(3, forge.Adoption{Commit: "of no interest", Author: rb.Author}); again.Head != rb.Head || again.Author != ada {
		t.Errorf("%s became %s by %s", rb.Head, again.Head, again.Author)
	}
}

// TestAdoptUpdatedBranch: whoever presses "update branch" at a forge merges the base
// branch into it. The change is what the branch has beside the base branch, in one commit.
func TestAdoptUpdatedBranch(t *testing.T) {
	t.Parallel()
	w := newEdited(t)
	w.person.Commit("more", map[string]string{"more.txt": "y\n"})
	w.person.Git("checkout", "-q", "main")
	w.person.Commit("somebody else", map[string]string{"b.txt": "c\n"})
	w.person.Git("push", "-q", w.origin.Dir, "main")
	w.person.Git("checkout", "-q", "mine")
	w.person.Git("-c", "user.name=forge", "merge", "-q", "--no-edit", "main")
	rb := w.adopt(2, forge.Adoption{Commit: w.push(), Branch: adoptedBranch})
	if rb.Refusal != "" || strings.Join(rb.Files, " ") != "more.txt new.txt" || rb.Author != ada || rb.Base != string(w.origin.Head("main")) {
		t.Errorf("got %+v", rb)
	}
}

// TestAdoptMergedTheOtherWay: what a person made is theirs also where they
// merged it into the base branch, and not that into it.
func TestAdoptMergedTheOtherWay(t *testing.T) {
	t.Parallel()
	w := newEdited(t)
	w.person.Commit("more of it", map[string]string{"more.txt": "y\n"})
	w.person.Git("checkout", "-q", "main")
	w.person.Commit("somebody else", map[string]string{"b.txt": "c\n"})
	w.person.Git("push", "-q", w.origin.Dir, "main")
	w.person.Git("checkout", "-q", "--detach", "main")
	w.person.Git("-c", "user.name=another", "merge", "-q", "--no-ff", "--no-edit", "mine")
	rb := w.adopt(2, forge.Adoption{Commit: w.push(), Branch: adoptedBranch})
	if rb.Refusal != "" || strings.Join(rb.Files, " ") != "more.txt new.txt" || rb.Author != ada ||
		!strings.Contains(w.origin.Git("log", "-1", "--format=%B", rb.Head), "more of it") {
		t.Errorf("got %+v", rb)
	}
}

// TestAdoptUpdatedAlone: who only presses "update branch" has made nothing of
// the change, whichever parent comes first.
func TestAdoptUpdatedAlone(t *testing.T) {
	t.Parallel()
	for name, merge := range map[string]func(w *edited){
		"the base branch into it": func(w *edited) { w.person.Git("merge", "-q", "--no-edit", "main") },
		"it into the base branch": func(w *edited) {
			w.person.Git("checkout", "-q", "--detach", "main")
			w.person.Git("merge", "-q", "--no-ff", "--no-edit", "mine")
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newEdited(t)
			w.person.Git("checkout", "-q", "main")
			w.person.Commit("somebody else", map[string]string{"b.txt": "c\n"})
			w.person.Git("push", "-q", w.origin.Dir, "main")
			w.person.Git("checkout", "-q", "mine")
			merge(w)
			rb := w.adopt(2, forge.Adoption{Commit: w.push(), Branch: adoptedBranch})
			if rb.Refusal != "" || strings.Join(rb.Files, " ") != "new.txt" || !strings.HasPrefix(w.authors(rb.Head), "pfl-forge <") {
				t.Errorf("got %+v by %s", rb, w.authors(rb.Head))
			}
		})
	}
}

// TestAdoptOnRewrittenBase: what the base branch had when the branch was made,
// and has not any more, does not come back.
func TestAdoptOnRewrittenBase(t *testing.T) {
	t.Parallel()
	w := newEdited(t)
	w.person.Commit("more", map[string]string{"more.txt": "y\n"})
	commit := w.push()
	w.person.Git("checkout", "-q", "main")
	w.person.Git("reset", "-q", "--hard", "HEAD~1")
	w.person.Commit("another second", map[string]string{"c.txt": "c\n"})
	w.person.Git("push", "-q", "--force", w.origin.Dir, "main")
	rb := w.adopt(2, forge.Adoption{Commit: commit, Branch: adoptedBranch})
	if rb.Refusal != "" || strings.Join(rb.Files, " ") != "more.txt new.txt" || rb.Base != string(w.origin.Head("main")) {
		t.Errorf("got %+v", rb)
	}
}

// TestAdoptRefuses tells why a commit cannot become the change, and changes nothing then.
func TestAdoptRefuses(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	for name, test := range map[string]struct {
		edit   func(w *edited) string // returns the commit that the person names
		why    string
		offers bool // another commit
	}{
		"moved": {func(w *edited) string {
			w.person.Commit("one", map[string]string{"one.txt": "1\n"})
			seen := w.push()
			w.person.Commit("two", map[string]string{"two.txt": "2\n"})
			w.push()
			return seen
		}, "by now", true},
		"never there": {func(w *edited) string { return w.change.Base }, "by now", true},
		"gone": {func(w *edited) string {
			w.person.Commit("one", map[string]string{"one.txt": "1\n"})
			seen := w.push()
			w.origin.Git("update-ref", "-d", "refs/heads/"+adoptedBranch)
			return seen
		}, "is gone", false},
		"nothing": {func(w *edited) string {
			w.person.Git("reset", "-q", "--hard", w.change.Base)
			w.person.Git("commit", "-q", "--allow-empty", "-m", "done")
			return w.push()
		}, "changes nothing", false},
		"another history": {func(w *edited) string {
			w.person.Git("checkout", "-q", "--orphan", "new")
			w.person.Git("commit", "-q", "-m", "from nothing")
			return w.push()
		}, "no commit in common", false},
		"what the base branch dropped": {func(w *edited) string { // a merge of the new base branch has it as well
			w.person.Git("checkout", "-q", "main")
			w.person.Git("reset", "-q", "--hard", "HEAD~1")
			w.person.Commit("another second", map[string]string{"c.txt": "c\n"})
			w.person.Git("push", "-q", "--force", w.origin.Dir, "main")
			w.person.Git("checkout", "-q", "mine")
			w.person.Git("merge", "-q", "--no-edit", "main")
			return w.push()
		}, "brings back what it dropped", false},
		"unsafe": {func(w *edited) string {
			w.person.Commit("ours", map[string]string{".forge/state.yaml": "x\n"})
			return w.push()
		}, "belongs to the service", false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newEdited(t)
			commit := test.edit(w)
			before := w.origin.Git("for-each-ref", "refs/heads", "refs/forge/_proposed")
			rb := w.adopt(2, forge.Adoption{Commit: commit, Branch: adoptedBranch})
			if !strings.Contains(rb.Refusal, test.why) || (rb.Found != "") != test.offers || rb.Head != "" {
				t.Errorf("got %+v", rb)
			}
			if after := w.origin.Git("for-each-ref", "refs/heads", "refs/forge/_proposed"); after != before {
				t.Errorf("the origin has\n%s, and had\n%s", after, before)
			}
		})
	}
	w := newEdited(t)
	c := command(forge.StepRebase, 2)
	c.Input = &forge.RebaseInput{Adopted: &forge.Adoption{Commit: "--exec", Branch: adoptedBranch}}
	fails(t, w.imp.rebase(t.Context(), c, silent), forge.FailInvalidOutput, "adopted.commit")
}
