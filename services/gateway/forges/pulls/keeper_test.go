package pulls_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest/reviews"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/pulls"
	"github.com/pfl-forge/pfl-forge/services/gateway/hooks"
)

// TestOpenAgain: however often a pull request is asked for, and whatever answer
// is lost, there is one, and what is there is not written again.
func TestOpenAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	k := w.keeper()
	lost := func(method, part string) forgetest.Fault {
		return forgetest.Fault{Method: method, Part: part, By: "bot", Status: http.StatusBadGateway, After: true}
	}
	w.fake.Script(lost("POST", "/web/pulls"), lost("POST", "/labels"), lost("POST", "/statuses/"))
	failed := 0
	var p *forge.PullRequest
	wait.Until(t, "it is there", func() bool {
		var err error
		if p, err = k.Open(wait.Context(t), w.to, attempt, w.in); err != nil {
			if _, ok := errors.AsType[*forges.ParkedError](err); !ok {
				t.Fatal(err)
			}
			failed++
		}
		return err == nil
	})
	if failed != 3 || p.Number != 1 || p.State != forge.PullOpen || p.Head != w.in.Head || p.Branch != "forge/task-1" || p.Base != "main" || p.URL == "" {
		t.Errorf("after %d failures it is %+v", failed, p)
	}
	s := w.show()
	if s.Title != "Mend the crash" || len(s.Labels) != 1 || !strings.Contains(s.Body, "make check") || !strings.Contains(s.Body, "1 of 1 requirements met") {
		t.Errorf("it shows %+v", s)
	}
	written := func() int { return w.fake.Asked("POST", "root1/web") + w.fake.Asked("PATCH", "root1/web") }
	before := written()
	again := w.open(w.keeper())
	if again.Number != 1 || written() != before {
		t.Errorf("again it is %+v, with %d more writes", again, written()-before)
	}
	// Another text is written, and the statuses that are there are not.
	w.in.Facts.CostUSD = 1.5
	if w.open(k); !strings.Contains(w.show().Body, "$1.50") || written() != before+1 {
		t.Errorf("another text: %d writes", written()-before)
	}
}

// TestBranchOfAPerson: where a person has pushed to the branch, neither the
// text nor the statuses of our change are written to theirs.
func TestBranchOfAPerson(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	k := w.keeper()
	w.open(k)
	theirs := w.commit("forge/task-1", "forge/task-1", "b.txt", "b")
	w.in.Facts.CostUSD = 7
	written := func() int { return w.fake.Asked("POST", "/statuses/") + w.fake.Asked("PATCH", w.repo) }
	before := written()
	if p := w.open(k); p.Head != theirs || written() != before {
		t.Errorf("it is %+v, with %d writes", p, written()-before)
	}
}

// TestOpenWhatEnded: one that was closed is opened again only where the rules
// knew of it, and one that was merged is answered as that.
func TestOpenWhatEnded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	k := w.keeper()
	w.open(k)
	w.as("ada", "PATCH", "/repos/"+w.repo+"/issues/1", object{"state": "closed"}, nil)
	if p := w.open(k); p.State != forge.PullClosed || p.By != "ada" || p.Number != 1 {
		t.Errorf("closed it is %+v", p)
	}
	w.in.Number = 1
	if p := w.open(k); p.State != forge.PullOpen || p.By != "" {
		t.Errorf("opened again it is %+v", p)
	}
	w.ready()
	w.as("ada", "POST", "/repos/"+w.repo+"/pulls/1/merge", object{"do": "fast-forward-only"}, nil)
	for _, number := range []int{0, 1} {
		w.in.Number = number
		if p := w.open(k); p.State != forge.PullMerged || p.By != "ada" || p.MergeCommit != w.in.Head || p.Number != 1 {
			t.Errorf("merged it is %+v", p)
		}
	}
}

// ready has all that the protection demands.
func (w *world) ready() {
	w.t.Helper()
	w.status("ada", "ci/unit", "success")
	w.review("ada", "APPROVED", "")
}

// TestPullOfAnother: a person who opens a pull request of our branch, with our
// mark in it, has none of our words in it, and nothing merged.
func TestPullOfAnother(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	k := w.keeper()
	body := w.textOf(k)
	w.as("ada", "POST", "/repos/"+w.repo+"/pulls", object{"head": "forge/task-1", "base": "main", "title": "mine", "body": body}, nil)
	w.ready2("root1")
	_, err := k.Open(wait.Context(t), w.to, attempt, w.in)
	if person, ok := errors.AsType[*pulls.PersonError](err); !ok || !strings.Contains(person.What, "work account 3 ada") {
		t.Errorf("open: %v", err)
	}
	if s, err := k.Merge(wait.Context(t), w.to, w.in); err == nil {
		t.Errorf("merge: %+v", s)
	}
	if s := w.show(); s.Merged || s.Title != "mine" || len(s.Labels) > 0 {
		t.Errorf("it is %+v", s)
	}
	if n := w.fake.Asked("POST", "/statuses/"); n != 1 { // ci's
		t.Errorf("%d statuses were written", n)
	}
	// Once it is closed, ours is opened beside it.
	w.as("ada", "PATCH", "/repos/"+w.repo+"/issues/1", object{"state": "closed"}, nil)
	if p := w.open(k); p.Number != 2 || p.State != forge.PullOpen {
		t.Errorf("ours is %+v", p)
	}
}

// textOf returns the text of our pull request in another world.
func (w *world) textOf(*pulls.Keeper) string {
	w.t.Helper()
	other := newWorld(w.t)
	other.open(other.keeper())
	return other.show().Body
}

// ready2 has the protection hold by another person's approval.
func (w *world) ready2(user string) {
	w.t.Helper()
	w.status(user, "ci/unit", "success")
	w.review(user, "APPROVED", "")
}

// TestMerge: it is merged at that head and in no other way, whatever the forge answers.
func TestMerge(t *testing.T) {
	t.Parallel()
	again := forgetest.Fault{Method: "POST", Part: "/merge", Status: http.StatusMethodNotAllowed, Message: "Please try again later"}
	moved := forgetest.Fault{Method: "POST", Part: "/merge", Status: http.StatusConflict, Message: "head out of date"}
	refused := forgetest.Fault{Method: "POST", Part: "/merge", Status: http.StatusMethodNotAllowed, Message: "Does not have enough approvals"}
	for name, test := range map[string]struct {
		faults  []forgetest.Fault
		change  func(w *world)
		state   forge.PullState
		blocked string
	}{
		"at once":          {state: forge.PullMerged},
		"not computed yet": {faults: []forgetest.Fault{again, again}, state: forge.PullMerged},
		"never computed":   {faults: []forgetest.Fault{again, again, again, again, again}, state: forge.PullOpen, blocked: "has not found out yet"},
		"another head": {change: func(w *world) {
			w.commit("forge/task-1", "forge/task-1", "b.txt", "b")
		}, state: forge.PullOpen, blocked: "its head is another commit"},
		"a race of heads": {faults: []forgetest.Fault{moved}, state: forge.PullOpen, blocked: "head out of date"},
		"no approval":     {change: func(w *world) { w.review("ada", "REQUEST_CHANGES", "no") }, state: forge.PullOpen, blocked: "ada asks for changes"},
		"refused":         {faults: []forgetest.Fault{refused}, state: forge.PullOpen, blocked: "enough approvals"},
		"closed":          {change: func(w *world) { w.as("ada", "PATCH", "/repos/"+w.repo+"/issues/1", object{"state": "closed"}, nil) }, state: forge.PullClosed},
		"merged by another": {change: func(w *world) {
			w.as("ada", "POST", "/repos/"+w.repo+"/pulls/1/merge", object{"do": "fast-forward-only"}, nil)
		}, state: forge.PullMerged},
		"a draft": {change: func(w *world) {
			w.as("ada", "PATCH", "/repos/"+w.repo+"/pulls/1", object{"title": "WIP: not yet"}, nil)
			w.in.Number = w.open(w.keeper()).Number // which leaves it one
		}, state: forge.PullOpen, blocked: "it is a draft"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			k := w.keeper()
			w.in.Number = w.open(k).Number
			w.ready()
			if test.change != nil {
				test.change(w)
			}
			w.fake.Script(test.faults...)
			p, err := k.Merge(wait.Context(t), w.to, w.in)
			if err != nil || p.State != test.state || !strings.Contains(p.Blocked, test.blocked) || (p.Blocked == "") != (test.blocked == "") {
				t.Fatalf("it is %+v, %v", p, err)
			}
			if merged := w.tip() == w.in.Head; merged != (test.state == forge.PullMerged) {
				t.Errorf("main is at the change: %v", merged)
			}
		})
	}
}

// TestMergeBehindItsBase: what is behind its base is not merged, and the
// snapshot says so; nothing is asked of the forge that changes anything.
func TestMergeBehindItsBase(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	k := w.keeper()
	w.in.Base = "side"
	w.commit("main", "side", "s.txt", "s")
	w.open(k)
	w.commit("side", "side", "t.txt", "t")
	p, err := k.Merge(wait.Context(t), w.to, w.in)
	if err != nil || p.State != forge.PullOpen || !p.Behind || w.fake.Asked("POST", "/merge") != 0 {
		t.Errorf("it is %+v, %v", p, err)
	}
}

// TestLostMerge: a merge whose answer is lost is found by the next look.
func TestLostMerge(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	k := w.keeper()
	w.open(k)
	w.ready()
	w.fake.Script(forgetest.Fault{Method: "POST", Part: "/merge", Status: http.StatusBadGateway, After: true})
	if p, err := k.Merge(wait.Context(t), w.to, w.in); err == nil {
		t.Errorf("the answer was lost: %+v", p)
	}
	p, err := k.Merge(wait.Context(t), w.to, w.in)
	if err != nil || p.State != forge.PullMerged || p.MergeCommit != w.in.Head || w.fake.Asked("POST", "/merge") != 1 {
		t.Errorf("it is %+v, %v", p, err)
	}
}

// TestLimits: a limit of the forge is an error with its end, and nothing waits for it.
func TestLimits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	k := w.keeper()
	for _, part := range []string{"/user", "/pulls", "/branches/", "/status", "/statuses/", "/labels", "/reviews", "/compare/"} {
		w.fake.Script(forgetest.Fault{Part: part, By: "bot", Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"600"}}})
		if _, err := k.Open(wait.Context(t), w.to, attempt, w.in); err == nil {
			t.Errorf("%s: no error", part)
		} else if _, ok := errors.AsType[*forges.ParkedError](err); !ok {
			t.Errorf("%s: %v", part, err)
		}
	}
	if p := w.open(k); p.Number != 1 {
		t.Errorf("afterwards it is %+v", p)
	}
}

// TestNames: what would be another path, branch or commit is refused by its
// field, and the forge is not asked.
func TestNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	k := w.keeper()
	for _, change := range []func(in *forge.PullInput){
		func(in *forge.PullInput) { in.Branch = "../../issues" }, func(in *forge.PullInput) { in.Branch = "eve:main" },
		func(in *forge.PullInput) { in.Base = "main?x=y" }, func(in *forge.PullInput) { in.Base = "a\r\nHost: b" },
		func(in *forge.PullInput) { in.Head = "../../user" }, func(in *forge.PullInput) { in.Head = "" },
	} {
		in := *w.in
		change(&in)
		before := w.fake.Asked("GET", "") + w.fake.Asked("POST", "")
		if _, err := k.Open(wait.Context(t), w.to, attempt, &in); err == nil {
			t.Errorf("opened %+v", in)
		}
		if _, err := k.Merge(wait.Context(t), w.to, &in); err == nil {
			t.Errorf("merged %+v", in)
		}
		if n := w.fake.Asked("GET", "") + w.fake.Asked("POST", "") - before; n != 0 {
			t.Errorf("the forge was asked %d times for %+v", n, in)
		}
	}
	other := w.to
	other.Project = "other"
	_, err := k.Open(wait.Context(t), other, attempt, w.in)
	if person, ok := errors.AsType[*pulls.PersonError](err); !ok || !strings.Contains(person.What, "no repository for project other") {
		t.Errorf("another project: %v", err)
	}
	w.in.Head = w.tip()
	if _, err := k.Open(wait.Context(t), w.to, attempt, w.in); err == nil || !strings.Contains(err.Error(), "it was changed by another one") {
		t.Errorf("a branch at another commit: %v", err)
	}
}

// TestOnAForge: on the fake and on a real Gitea a change is proposed on a protected
// branch, a person asks for changes, the rework is approved, and it is merged as
// the very commit that was verified; each is reported by the sweep alone.
func TestOnAForge(t *testing.T) {
	t.Parallel()
	onForges(t, func(t *testing.T, w *world) { //nolint:thelper // it is the test itself
		k := w.keeper(often)
		p := w.open(k)
		blocked, checks := "the status ci/unit has not passed", 1
		if w.dialect == hooks.GitLab { // which demands that all pass that there are, by no name
			blocked, checks = "it has 0 of 1 approvals", 0
		}
		if p.Number != 1 || p.State != forge.PullOpen || p.Behind || p.Blocked != blocked || len(p.Checks) != checks {
			t.Errorf("at first it is %+v", p)
		}
		w.run(k)
		w.until("it is open", func(p *forge.PullRequest) bool { return p.State == forge.PullOpen })
		w.status("ada", "ci/unit", "success")
		w.review("eve", "APPROVED", "a stranger")
		w.review("ada", "REQUEST_CHANGES", "please explain")
		asked := w.until("ada asks for changes", func(p *forge.PullRequest) bool { return len(p.Reviews) == 2 }).Reviews
		if ada := asked[0]; !ada.May || ada.Person != "ada" || ada.Verdict != forge.PullChangesRequested || ada.Commit != w.in.Head ||
			!strings.Contains(ada.Text, "please explain") || !strings.Contains(ada.Text, "a.txt:1: why ada?") {
			t.Errorf("ada's is %+v", ada)
		}
		if eve := asked[1]; eve.May || eve.Verdict != forge.PullApproved {
			t.Errorf("the stranger's is %+v", eve)
		}
		w.in.Number = 1
		if p, err := k.Merge(wait.Context(t), w.to, w.in); err != nil || p.State != forge.PullOpen || p.Blocked == "" {
			t.Errorf("merged too soon it is %+v, %v", p, err)
		}
		former := w.in.Head
		w.in.Head = w.commit("forge/task-1", "forge/task-1", "b.txt", "why\n")
		w.open(k)
		w.status("ada", "ci/unit", "success")
		w.review("ada", "APPROVED", "I see")
		w.until("nothing is in the way", func(p *forge.PullRequest) bool { return p.Blocked == "" && p.Head == w.in.Head })
		old := *w.in
		old.Head = former
		if p, err := k.Merge(wait.Context(t), w.to, &old); err != nil || p.State != forge.PullOpen || !strings.Contains(p.Blocked, "another commit") {
			t.Errorf("merged at the former head it is %+v, %v", p, err)
		}
		if p, err := k.Merge(wait.Context(t), w.to, w.in); err != nil || p.State != forge.PullMerged || p.MergeCommit != w.tip() ||
			(w.tip() == w.in.Head) == (w.dialect == hooks.GitHub) { // only a fast-forward brings the very commit
			t.Errorf("merged it is %+v, %v", p, err)
		}
		w.until("it is merged", func(p *forge.PullRequest) bool { return p.State == forge.PullMerged })
	})
}

// TestMethodThatTheForgeHasNot: a method that the forge, or a project of it, has
// not is told by both steps as a person's to mend, before anything is opened.
func TestMethodThatTheForgeHasNot(t *testing.T) {
	t.Parallel()
	for dialect, want := range map[hooks.Kind]string{hooks.GitHub: "choose merge, squash or rebase", hooks.GitLab: "choose merge or squash"} {
		w := newWorld(t)
		w.dialect = dialect
		w.fake.Lab.Set(w.repo, forgetest.Project{Method: "merge"})
		k := w.keeper()
		_, err := k.Open(wait.Context(t), w.to, attempt, w.in)
		_, merged := k.Merge(wait.Context(t), w.to, w.in)
		for _, err := range []error{err, merged} {
			if f := pulls.Failure(err); err == nil || f.Reason != forge.FailConfig || !strings.Contains(f.Message, "merge.method") ||
				!strings.Contains(f.Message, want) {
				t.Errorf("a fast-forward: %v", err)
			}
		}
		if n := w.fake.Asked("POST", "/pulls") + w.fake.Asked("POST", "/merge_requests"); n != 0 {
			t.Errorf("%d were opened", n)
		}
		w.fake.Script(forgetest.Fault{Method: "GET", Part: "/projects/", Status: 502})
		if f := pulls.Failure(errOf(k.Open(wait.Context(t), w.to, attempt, w.in))); dialect == hooks.GitLab && f.Reason != forge.FailOrigin {
			t.Errorf("whose settings cannot be asked for: %+v", f)
		}
	}
}

// errOf returns the error alone.
func errOf(_ *forge.PullRequest, err error) error { return err }

// TestRemarksToResolve: where the forge demands that remarks are resolved, one
// that is not keeps a change from being merged; on GitLab, whoever wrote it.
func TestRemarksToResolve(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.dialect = hooks.GitLab
	w.fake.Lab.Set(w.repo, forgetest.Project{Resolved: true})
	k := w.keeper()
	w.open(k)
	w.status("ada", "ci/unit", "success")
	w.review("ada", "APPROVED", "fine")
	w.fake.Reviews(w.repo, 1, func(l reviews.List) { l.Resolve("a.txt", "ada") })
	w.review("eve", "COMMENT", "")
	w.in.Number = 1
	if p, err := k.Merge(wait.Context(t), w.to, w.in); err != nil || p.State != forge.PullOpen || p.Blocked != "a remark of eve is not resolved" {
		t.Errorf("with a remark of eve it is %+v, %v", p, err)
	}
	w.fake.Reviews(w.repo, 1, func(l reviews.List) { l.Resolve("a.txt", "ada") })
	if p, err := k.Merge(wait.Context(t), w.to, w.in); err != nil || p.State != forge.PullMerged {
		t.Errorf("with all resolved it is %+v, %v", p, err)
	}
}

// TestStatusOfManyApprovers: what the forge would cut off is cut off by us, so
// that it is not written again each time.
func TestStatusOfManyApprovers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.dialect, w.in.Policy.Method = hooks.GitHub, "squash"
	for i := range 40 {
		w.in.Facts.Approvers = append(w.in.Facts.Approvers, fmt.Sprintf("person-%d", i))
	}
	k := w.keeper()
	w.open(k)
	before := w.fake.Asked("POST", "/statuses/")
	if w.open(k); before == 0 || w.fake.Asked("POST", "/statuses/") != before {
		t.Errorf("statuses were written %d times, and %d times again", before, w.fake.Asked("POST", "/statuses/")-before)
	}
}
