package pulls_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/testoutput"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest/reviews"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/pulls"
)

// asked has ada ask for changes of what bot opened, and eve as well, who may
// not. It returns the remark of ada's that the snapshot names.
func (w *world) asked(k *pulls.Keeper) forge.PullRemark {
	w.t.Helper()
	w.open(k)
	w.review("eve", "REQUEST_CHANGES", "no")
	w.review("ada", "REQUEST_CHANGES", "please @bot, Closes #1")
	p := w.open(k)
	for _, r := range p.Reviews {
		for _, m := range r.Remarks {
			if r.Person == "ada" && m.Thread != 0 {
				return forge.PullRemark{Thread: m.Thread, Digest: m.Digest, Changed: true}
			}
			if r.Person != "ada" {
				w.t.Errorf("named is a remark of %s", r.Account)
			}
		}
	}
	w.t.Fatalf("no remark of ada's is named in %+v", p.Reviews)
	return forge.PullRemark{}
}

// rework pushes another change to the branch.
func (w *world) rework(content string) {
	w.t.Helper()
	w.in.Head = w.commit("forge/task-1", "forge/task-1", "b.txt", content)
}

// answers returns what bot said in discussions and in comments.
func (w *world) answers() (list []string) {
	w.t.Helper()
	w.fake.Reviews(w.repo, 1, func(l reviews.List) {
		for _, v := range l {
			for _, m := range v.Remarks {
				if v.By == "bot" {
					list = append(list, m.Body)
				}
			}
		}
	})
	for _, c := range w.fake.Comments(w.repo, 1) {
		if c.By == "bot" {
			list = append(list, c.Body)
		}
	}
	return list
}

// TestThreadsAreAnswered: after the rework each remark that was handed on has
// one answer, by code, whoever carries the step out and however often; a
// stranger's and one that was not handed on have none, and nothing is resolved.
func TestThreadsAreAnswered(t *testing.T) {
	t.Parallel()
	onFakes(t, func(t *testing.T, w *world) { //nolint:thelper // it is the test itself
		k := w.keeper()
		a := w.asked(k)
		w.rework("b\n")
		w.in.Answers = []forge.PullRemark{a}
		for range 2 {
			w.open(k)
			w.open(w.keeper())
		}
		got := w.answers()
		if len(got) != 1 || !strings.Contains(got[0], "Reworked in `"+w.in.Head[:12]+"`") {
			t.Fatalf("the answers are %q", got)
		}
		if strings.ContainsAny(strings.ReplaceAll(got[0], "<!--", ""), "@") || strings.Contains(got[0], "Closes") {
			t.Errorf("it says %q", got[0])
		}
		if w.dialect == "" && (!strings.Contains(got[0], "a.txt") || !strings.Contains(got[0], "why ada?")) { // Gitea has no answers in discussions
			t.Errorf("the comment does not say what it is about: %q", got[0])
		}
		w.fake.Reviews(w.repo, 1, func(l reviews.List) {
			if !l.Open() {
				t.Error("we resolved it")
			}
		})
		// Somebody else writes a mark like ours, which is none.
		w.review("ada", "REQUEST_CHANGES", "again")
		p := w.open(k)
		last := p.Reviews[0].Remarks[len(p.Reviews[0].Remarks)-1]
		w.rework("c\n")
		w.in.Answers = []forge.PullRemark{{Thread: last.Thread, Digest: last.Digest}}
		w.as("eve", "POST", "/repos/"+w.repo+"/issues/1/comments", object{
			"body": fmt.Sprintf("<!-- pfl-forge answer %d %s -->\nReworked", last.Thread, last.Digest),
		}, nil)
		w.open(k)
		if got := w.answers(); len(got) != 2 || !strings.Contains(got[1], "Not changed: ") {
			t.Errorf("the answers are %q", got)
		}
	})
}

// TestAnswersThatFail: an answer that was lost is not written twice, one that the forge had
// no time for is written by the next attempt, and one that cannot be given holds nothing up.
func TestAnswersThatFail(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	onFakes(t, func(t *testing.T, w *world) { //nolint:thelper // it is the test itself
		k := w.keeper()
		a := w.asked(k)
		w.rework("b\n")
		w.in.Answers = []forge.PullRemark{a}
		place := map[bool]string{true: "/comments", false: "/replies"}[w.dialect == ""]
		if w.dialect == "gitlab" {
			place = "/discussions/"
		}
		second := attempt
		second.Claim = 2
		for _, lost := range []bool{false, true} {
			w.fake.Script(forgetest.Fault{Method: "POST", Part: place, Status: 502, After: lost})
			_, err := w.keeper().Open(wait.Context(t), w.to, second, w.in)
			if f := pulls.Failure(err); err == nil || f.Reason != forge.FailOrigin || f.Until.IsZero() {
				t.Fatalf("lost %t: %v", lost, err)
			}
			if strings.Contains(w.show().Body, `"claim":2`) {
				t.Error("the mark of the attempt was written before the answers")
			}
		}
		w.open(w.keeper())
		if got := w.answers(); len(got) != 1 {
			t.Errorf("after a lost answer there are %q", got)
		}
		// We may not say anything, and the remark is gone: the change goes on.
		w.review("ada", "REQUEST_CHANGES", "again")
		p := w.open(w.keeper())
		last := p.Reviews[0].Remarks[len(p.Reviews[0].Remarks)-1]
		w.rework("c\n")
		w.in.Answers = []forge.PullRemark{{Thread: last.Thread, Digest: last.Digest}, {Thread: last.Thread + 1_000, Digest: last.Digest}}
		w.fake.Script(forgetest.Fault{Method: "POST", Part: place, Status: 403})
		if p := w.open(w.keeper()); p.Head != w.in.Head || p.State != forge.PullOpen {
			t.Errorf("it is %+v", p)
		}
		w.fake.Reviews(w.repo, 1, func(l reviews.List) { l.Remove("a.txt") })
		w.open(w.keeper())
		if got := w.answers(); len(got) != 1 {
			t.Errorf("the answers are %q", got)
		}
	})
}

// TestAnswersOfWhatEnded: a pull request that ended before its step is still
// answered where that is true: one that a person closed is opened again, and
// one that a person merged at the new commit is answered as it is. Where it is
// at another commit, the log says which remarks have no answer for that.
func TestAnswersOfWhatEnded(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	merge := func(w *world) {
		w.status("ada", "pfl-forge/verify", "success")
		w.ready()
		w.as("ada", "POST", "/repos/"+w.repo+"/pulls/1/merge", object{"do": "fast-forward-only"}, nil)
	}
	for name, test := range map[string]struct {
		meanwhile func(w *world)
		answered  bool
	}{
		"closed": {func(w *world) { w.as("ada", "PATCH", "/repos/"+w.repo+"/issues/1", object{"state": "closed"}, nil) }, true},
		"merged": {merge, true},
		"moved and merged": {func(w *world) {
			ours := w.in.Head
			w.in.Head = w.commit("forge/task-1", "forge/task-1", "c.txt", "theirs")
			merge(w)
			w.in.Head = ours
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			onFakes(t, func(t *testing.T, w *world) { //nolint:thelper // it is the test itself
				var log testoutput.Output
				k := w.keeper(func(cfg *pulls.Config) { cfg.Log = slog.New(slog.NewTextHandler(&log, nil)) })
				a := w.asked(k)
				w.rework("b\n")
				w.in.Answers, w.in.Number = []forge.PullRemark{a}, 1
				test.meanwhile(w)
				for range 2 {
					w.open(k)
				}
				got := w.answers()
				if test.answered && (len(got) != 1 || !strings.Contains(got[0], "Reworked in `"+w.in.Head[:12]+"`")) {
					t.Errorf("the answers are %q", got)
				}
				told := fmt.Sprintf("remark=%d", a.Thread)
				if !test.answered && (len(got) > 0 || !strings.Contains(log.String(), told)) {
					t.Errorf("the answers are %q, and the log %s", got, log.String())
				}
			})
		})
	}
}

// TestRemarksStayTheSame: a remark is known again when its line moves or another
// one is resolved, and is another one when its author changes its words.
func TestRemarksStayTheSame(t *testing.T) {
	t.Parallel()
	onFakes(t, func(t *testing.T, w *world) { //nolint:thelper // it is the test itself
		k := w.keeper()
		w.open(k)
		w.as("ada", "POST", "/repos/"+w.repo+"/pulls/1/reviews", object{"event": "REQUEST_CHANGES", "body": "two things", "comments": []object{
			{"path": "a.txt", "body": "shorter", "new_position": 1}, {"path": "b.txt", "body": "longer", "new_position": 2},
		}}, nil)
		before := w.open(k).Reviews[0]
		if len(before.Remarks) != 3 || before.Remarks[0].Thread != 0 {
			t.Fatalf("the remarks are %+v", before.Remarks)
		}
		w.rework("b\n")
		w.fake.Reviews(w.repo, 1, func(l reviews.List) {
			l.Resolve("b.txt", "ada")
			l[0].Remarks[0].Line = 9
		})
		after := w.open(k).Reviews[0]
		if after.Text == before.Text || len(after.Remarks) != 2 || after.Remarks[0] != before.Remarks[0] || after.Remarks[1] != before.Remarks[1] {
			t.Errorf("before it is %+v, and after %+v", before, after)
		}
		w.fake.Reviews(w.repo, 1, func(l reviews.List) { l[0].Remarks[0].Body = "much shorter" })
		if edited := w.open(k).Reviews[0]; edited.Remarks[1].Thread != before.Remarks[1].Thread || edited.Remarks[1] == before.Remarks[1] {
			t.Errorf("edited it is %+v", edited)
		}
	})
}
