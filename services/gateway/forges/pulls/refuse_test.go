package pulls_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/pulls"
	"github.com/pfl-forge/pfl-forge/services/gateway/hooks"
)

// onFakes runs a test on the fake in each of its dialects.
func onFakes(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	t.Run("gitea", func(t *testing.T) { test(t, newWorld(t)) })
	onOthers(t, test)
}

// onOthers runs a test on a fake of each other kind of forge than Gitea.
func onOthers(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	t.Run("github", func(t *testing.T) {
		w := newWorld(t)
		w.dialect, w.in.Policy.Method = hooks.GitHub, "squash"
		test(t, w)
	})
	t.Run("gitlab", func(t *testing.T) {
		w := newWorld(t)
		w.dialect = hooks.GitLab
		test(t, w)
	})
}

// unprotect has the forge demand nothing of main, so that it merges whatever it is asked to.
func (w *world) unprotect() {
	w.t.Helper()
	w.as("root1", "POST", "/repos/"+w.repo+"/branch_protections", object{"rule_name": "main"}, nil)
}

// merges returns how often the forge was asked to merge.
func (w *world) merges() int {
	return w.fake.Asked("POST", "/pulls/1/merge") + w.fake.Asked("PUT", "/pulls/1/merge") + w.fake.Asked("PUT", "/merge_requests/1/merge")
}

// move has a branch be at a commit, as whoever may force that.
func (w *world) move(branch, commit string) {
	w.t.Helper()
	dir := w.fake.Dir(w.repo)
	if _, err := git.Run(wait.Context(w.t), git.Command{Dir: dir, GitDir: dir}, "update-ref", "refs/heads/"+branch, commit); err != nil {
		w.t.Fatal(err)
	}
}

// retarget has a person move the first pull request to the branch release.
func (w *world) retarget() {
	w.t.Helper()
	w.move("release", w.tip())
	w.as("ada", "PATCH", "/repos/"+w.repo+"/pulls/1", object{"base": "release", "body": w.show().Body}, nil)
}

// TestMergeAsItIsNow: what has come in the way between the decision and the merge keeps it
// from being merged, also where the forge itself would merge it: the command can be hours old.
func TestMergeAsItIsNow(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	passed := func(w *world) { w.status("ada", "ci/unit", "success") }
	for name, test := range map[string]struct {
		change func(w *world)
		merged bool
	}{
		"nothing in the way": {change: passed, merged: true},
		"the named check passed": {change: func(w *world) {
			passed(w)
			w.in.Policy.Checks = []string{"ci/unit"}
			w.status("ada", "ci/lint", "failure")
		}, merged: true},
		"no check yet":                 {change: func(*world) {}},
		"a check failed":               {change: func(w *world) { passed(w); w.status("ada", "ci/lint", "failure") }},
		"a check runs again":           {change: func(w *world) { passed(w); w.status("ada", "ci/unit", "pending") }},
		"the named check is not there": {change: func(w *world) { passed(w); w.in.Policy.Checks = []string{"ci/unit", "ci/lint"} }},
		"the named check failed":       {change: func(w *world) { w.status("ada", "ci/unit", "failure"); w.in.Policy.Checks = []string{"ci/unit"} }},
		"a person asks for changes":    {change: func(w *world) { passed(w); w.review("ada", "REQUEST_CHANGES", "no") }},
		"a stranger asks for changes":  {change: func(w *world) { passed(w); w.review("eve", "REQUEST_CHANGES", "no") }, merged: true},
		"a status in our name":         {change: func(w *world) { passed(w); w.status("ada", "pfl-forge/verify", "success") }},
		"another base":                 {change: func(w *world) { passed(w); w.retarget() }},
		"a base that was taken back": {change: func(w *world) {
			passed(w)
			before := w.tip()
			w.move("main", w.in.Head) // a commit that is bad
			w.in.Parent, w.in.Head = w.in.Head, w.commit("forge/task-1", "forge/task-1", "b.txt", "b")
			passed(w)
			w.move("main", before)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			onFakes(t, func(t *testing.T, w *world) { //nolint:thelper // it is the test itself
				w.unprotect()
				k := w.keeper()
				w.in.Number = w.open(k).Number
				test.change(w)
				p, err := k.Merge(wait.Context(t), w.to, w.in)
				if err != nil || p.Number != 1 || (p.State == forge.PullMerged) != test.merged || (w.merges() > 0) != test.merged {
					t.Errorf("it is %+v, %v, asked for %d times", p, err, w.merges())
				}
			})
		})
	}
}

// busy is a forge that is not done with the merge before, and is told of something meanwhile.
type busy struct {
	pulls.Forge

	meanwhile func()
}

// Merge says that it has to be asked for again.
func (b *busy) Merge(context.Context, string, int64, git.OID, forges.Method) error {
	b.meanwhile()
	return &forges.RefusedError{Code: http.StatusMethodNotAllowed, Again: true, Reason: "Base branch was modified"}
}

// TestMergeLooksEachTime: a merge that has to be asked for again is looked at
// again first: the base has moved, or a person has said no.
func TestMergeLooksEachTime(t *testing.T) {
	t.Parallel()
	onFakes(t, func(t *testing.T, w *world) { //nolint:thelper // it is the test itself
		w.unprotect()
		asked := 0
		k := w.keeper(func(c *pulls.Config) {
			c.Forge = &busy{c.Forge, func() {
				asked++
				w.review("ada", "REQUEST_CHANGES", "wait")
			}}
		})
		w.in.Number = w.open(k).Number
		w.status("ada", "ci/unit", "success")
		p, err := k.Merge(wait.Context(t), w.to, w.in)
		if err != nil || p.State != forge.PullOpen || len(p.Reviews) != 1 || asked != 1 {
			t.Errorf("it is %+v, %v, asked for %d times", p, err, asked)
		}
	})
}

// TestRetargeted: a pull request that a person moved to another base is the
// same one: no second one is opened beside it, and it is not merged.
func TestRetargeted(t *testing.T) {
	t.Parallel()
	onFakes(t, func(t *testing.T, w *world) { //nolint:thelper // it is the test itself
		w.unprotect()
		k := w.keeper()
		w.in.Number = w.open(k).Number
		w.status("ada", "ci/unit", "success")
		w.retarget()
		opened := w.fake.Asked("POST", w.repo+"/pulls") + w.fake.Asked("POST", "/merge_requests")
		for _, state := range []string{"open", "closed"} {
			w.as("ada", "PATCH", "/repos/"+w.repo+"/issues/1", object{"state": state}, nil)
			if p := w.open(k); p.Number != 1 || p.Base != "release" || p.State != forge.PullOpen {
				t.Errorf("from %s it is %+v", state, p)
			}
		}
		if p, err := k.Merge(wait.Context(t), w.to, w.in); err != nil || p.Number != 1 || !strings.Contains(p.Blocked, "merged into release") || w.merges() != 0 {
			t.Errorf("merged it is %+v, %v", p, err)
		}
		if n := w.fake.Asked("POST", w.repo+"/pulls") + w.fake.Asked("POST", "/merge_requests") - opened; n != 0 {
			t.Errorf("%d more were opened", n)
		}
	})
}

// TestKnownOfAnother: a number that is known and is not ours is told, whatever
// its state: a second one is never opened beside it.
func TestKnownOfAnother(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.as("ada", "POST", "/repos/"+w.repo+"/pulls", object{"head": "forge/task-1", "base": "main", "title": "mine"}, nil)
	w.in.Number = 1
	k := w.keeper()
	for _, state := range []string{"open", "closed"} {
		w.as("ada", "PATCH", "/repos/"+w.repo+"/issues/1", object{"state": state}, nil)
		if p, err := k.Open(wait.Context(t), w.to, attempt, w.in); err == nil || !strings.Contains(err.Error(), "not ours but that of work account 3 ada") {
			t.Errorf("%s: %+v, %v", state, p, err)
		}
	}
}

// looked has another gateway look at everything, and returns what it reports.
func (w *world) looked() []forge.Result {
	w.t.Helper()
	sweeps := func() int {
		return w.fake.Asked("GET", w.repo+"/issues") + w.fake.Asked("GET", w.repo+"/pulls") + w.fake.Asked("GET", "/merge_requests")
	}
	reported, before := len(w.reports()), sweeps()
	stop := w.run(w.keeper(often))
	// When a sweep asks again, all looks of the one before have ended.
	wait.Until(w.t, "it has looked", func() bool { return sweeps() > before+30 })
	stop()
	return w.reports()[reported:]
}

// TestLookIsNoAnswer: whatever write of the step fails, a watcher reports
// nothing as of that attempt before all of it is done: its report would end the
// attempt, and what is missing would never be written.
func TestLookIsNoAnswer(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	fails := func(method, part string) forgetest.Fault {
		return forgetest.Fault{Method: method, Part: part, By: "bot", Status: http.StatusForbidden}
	}
	onFakes(t, func(t *testing.T, w *world) { //nolint:thelper // it is the test itself
		k := w.keeper()
		writes := []forgetest.Fault{fails("POST", "/statuses/"), fails("POST", "/labels"), fails("PATCH", w.repo)}
		if w.dialect == hooks.GitLab { // which writes labels and the text at once
			writes = []forgetest.Fault{fails("POST", "/statuses/"), fails("GET", "/labels/"), fails("PUT", "/merge_requests/1")}
		}
		for _, fault := range writes {
			w.fake.Script(fault)
			if p, err := k.Open(wait.Context(t), w.to, attempt, w.in); err == nil {
				t.Errorf("%s %s: it is %+v", fault.Method, fault.Part, p)
			}
			if list := w.looked(); len(list) > 0 {
				t.Errorf("%s %s: reported is %+v", fault.Method, fault.Part, list)
			}
		}
		w.open(k)
		if list := w.looked(); len(list) == 0 || list[0].Attempt != attempt {
			t.Errorf("reported is %+v", list)
		}
		// The next attempt is about another head.
		next := attempt
		next.Number++
		w.in.Head = w.commit("forge/task-1", "forge/task-1", "b.txt", "b")
		w.fake.Script(fails("POST", "/statuses/"))
		if p, err := k.Open(wait.Context(t), w.to, next, w.in); err == nil {
			t.Errorf("it is %+v", p)
		}
		for _, r := range w.looked() {
			if r.Attempt != attempt {
				t.Errorf("reported is %+v", r)
			}
		}
		if _, err := k.Open(wait.Context(t), w.to, next, w.in); err != nil {
			t.Fatal(err)
		}
		if list := w.looked(); len(list) == 0 || list[0].Attempt != next {
			t.Errorf("reported is %+v", list)
		}
		var got struct{ Statuses []object }
		w.as("ada", "GET", "/repos/"+w.repo+"/commits/"+w.in.Head+"/status?limit=9", nil, &got)
		if len(got.Statuses) != 3 {
			t.Errorf("the head has the statuses %+v", got.Statuses)
		}
	})
}

// TestLabelThatIsNotThere: a label that the repository has not is told in the log,
// and nothing is held up by it: the others are put on, and the text is written.
func TestLabelThatIsNotThere(t *testing.T) {
	t.Parallel()
	onFakes(t, func(t *testing.T, w *world) { //nolint:thelper // it is the test itself
		w.in.Policy.Labels = []string{"no such", "forge"}
		var log bytes.Buffer
		p := w.open(w.keeper(func(c *pulls.Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) }))
		if s := w.show(); p.Number != 1 || len(s.Labels) != 1 || s.Labels[0].Name != "forge" || !strings.HasPrefix(s.Body, "<!-- pfl-forge pull") {
			t.Errorf("it is %+v, and shows %+v", p, s)
		}
		if !strings.Contains(log.String(), "no such") {
			t.Errorf("the log is %q", log.String())
		}
	})
}

// late is a forge that shows a push at the pull request after a while only.
type late struct {
	pulls.Forge

	former git.OID
}

// Pull returns a pull request at its former head.
func (l *late) Pull(ctx context.Context, repository string, number int64) (forges.Pull, error) {
	p, err := l.Forge.Pull(ctx, repository, number)
	p.Head = l.former
	return p, err
}

// FindPull is Pull, by the branch.
func (l *late) FindPull(ctx context.Context, repository string, head, base git.Branch) (forges.Pull, error) {
	p, err := l.Forge.FindPull(ctx, repository, head, base)
	p.Head = l.former
	return p, err
}

// TestPushThatIsShownLate: where the branch is at the commit and the pull request does not show it
// yet, its statuses are written all the same: the attempt ends, and nothing would write them later.
func TestPushThatIsShownLate(t *testing.T) {
	t.Parallel()
	onFakes(t, func(t *testing.T, w *world) { //nolint:thelper // it is the test itself
		w.in.Number = w.open(w.keeper()).Number
		former := git.OID(w.in.Head)
		w.in.Head = w.commit("forge/task-1", "forge/task-1", "b.txt", "b")
		p := w.open(w.keeper(func(c *pulls.Config) { c.Forge = &late{c.Forge, former} }))
		if n := w.fake.Asked("POST", "/statuses/"+w.in.Head); p.Head != string(former) || n != 3 {
			t.Errorf("it is %+v, with %d statuses", p, n)
		}
	})
}

// TestApprovalsOfWhomever: an approval by an account that no person is known
// for counts at the very head that it was given for alone; the forge counts it
// for another change as well where it keeps stale ones.
func TestApprovalsOfWhomever(t *testing.T) {
	t.Parallel()
	onFakes(t, func(t *testing.T, w *world) { //nolint:thelper // it is the test itself
		w.as("root1", "POST", "/repos/"+w.repo+"/branch_protections", object{"rule_name": "main", "required_approvals": 1}, nil)
		k := w.keeper()
		w.open(k)
		w.review("root1", "APPROVED", "")
		if p := w.open(k); p.Blocked != "" {
			t.Errorf("at that head it is %+v", p)
		}
		w.in.Head = w.commit("forge/task-1", "forge/task-1", "b.txt", "b")
		if p := w.open(k); p.Blocked != "it has 0 of 1 approvals" {
			t.Errorf("at another head it is %+v", p)
		}
		w.review("ada", "APPROVED", "")
		if p := w.open(k); p.Blocked != "" {
			t.Errorf("approved by a person it is %+v", p)
		}
	})
}
