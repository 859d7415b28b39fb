package forgedir

import (
	"slices"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/forgedir/layout"
	"github.com/pfl-forge/pfl-forge/forgedir/projection"
)

// journal decides on events as a runner would, as far as files are concerned.
type journal struct {
	t      testing.TB
	seq    uint64
	views  map[forge.IntentID]*forge.View
	seen   map[string]bool
	titles []string // every title that was ever decided

	between func() // called when an input was read and decided, but the desk does not know yet
}

func newJournal(t testing.TB) *journal {
	t.Helper()
	return &journal{t: t, views: map[forge.IntentID]*forge.View{}, seen: map[string]bool{}, between: func() {}}
}

func (j *journal) view(id forge.IntentID) (forge.View, bool) {
	v, ok := j.views[id]
	if !ok {
		return forge.View{}, false
	}
	return *v, true
}

func (j *journal) change(v *forge.View) {
	j.seq++
	v.Seq = j.seq
	v.Summary.UpdatedAt = time.Unix(int64(j.seq), 0)
}

func (j *journal) decide(e forge.Event) forge.Ruling {
	r := forge.Ruling{EventID: e.ID, Intent: e.To.Intent, Decision: forge.Applied}
	v := j.views[e.To.Intent]
	if j.seen[e.ID] {
		r.Decision = forge.Ignored
		return r
	}
	switch m := e.Message.(type) {
	case *forge.Submit:
		if v != nil {
			r.Decision, r.Reason = forge.Refused, "there is such an intent already"
			if v.Intent.Origin == m.Intent.Origin {
				r.Decision = forge.Ignored
			}
			return r
		}
		v = &forge.View{Intent: m.Intent}
		v.Summary = forge.Summary{Key: e.To, Status: forge.StatusProposed, Waiting: forge.WaitingApproval, Plan: "p1"}
		v.Intent.Clarifications = []forge.Clarification{{Question: "Which?"}}
		j.views[e.To.Intent] = v
		j.titles = append(j.titles, v.Intent.Title)
	case *forge.Edit:
		if m.Title != nil {
			v.Intent.Title = *m.Title
			j.titles = append(j.titles, v.Intent.Title)
		}
	case *forge.Answer:
		v.Intent.Clarifications = slices.Clone(v.Intent.Clarifications)
		v.Intent.Clarifications[m.Index].Answer = &m.Answer
	case *forge.Approve:
		if m.Plan != v.Summary.Plan {
			r.Decision, r.Reason = forge.Refused, "the plan is another one now"
			return r
		}
		v.Summary.Status, v.Summary.Waiting, v.Summary.Plan = forge.StatusExecuting, "", ""
	default: // a person writes no others in files
	}
	j.seen[e.ID] = true
	j.change(v)
	return r
}

// read takes in what the person wrote.
func (j *journal) read(d *fixture) []Problem {
	drafts, problems, err := d.Drafts(d.context())
	if err != nil {
		j.t.Fatal(err)
	}
	edits, more, err := d.Edits(d.context(), j.view)
	if err != nil {
		j.t.Fatal(err)
	}
	problems = append(problems, more...)
	for _, in := range append(drafts, edits...) {
		var ruled []forge.Ruling
		for _, e := range in.Events {
			ruled = append(ruled, j.decide(e))
		}
		j.between()
		refused, err := d.Decided(in, ruled)
		if err != nil {
			j.t.Fatal(err)
		}
		problems = append(problems, refused...)
	}
	return problems
}

func (j *journal) ids() []forge.IntentID {
	var ids []forge.IntentID
	for id := range j.views {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// write brings the files up to date that are behind.
func (j *journal) write(d *fixture) []Problem {
	var problems []Problem
	var summaries []forge.Summary
	for _, id := range j.ids() {
		v := *j.views[id]
		summaries = append(summaries, v.Summary)
		if d.Projected(id) != v.Seq {
			problems = append(problems, d.write(v)...)
		}
	}
	more, err := d.WriteState(summaries)
	if err != nil {
		j.t.Fatal(err)
	}
	return append(problems, more...)
}

// run reads and writes until there is nothing left to do, as a quiet run does.
func (j *journal) run(d *fixture) []Problem {
	for range 10 {
		problems := j.read(d)
		problems = append(problems, j.write(d)...)
		done := true
		for _, id := range j.ids() {
			done = done && d.Projected(id) == j.views[id].Seq
		}
		if done || len(problems) > 0 {
			return problems
		}
	}
	j.t.Fatal("it never comes to rest")
	return nil
}

// check compares the desk to one on which nothing ever went wrong.
func (j *journal) check(d *fixture) {
	fresh := newFixture(j.t)
	j.write(fresh)
	want, got := fresh.projection(), d.projection()
	for name, text := range want {
		if a, b := withoutRevision(text), withoutRevision(got[name]); name != layout.Observations && a != b {
			j.t.Errorf("%s is\n%s\nwant\n%s", name, b, a)
		}
	}
	for name := range d.everything() {
		if under(name, layout.Staging) {
			j.t.Errorf("%s is left", name)
		}
	}
}

func withoutRevision(text string) string {
	if content, _, ok := projection.SplitRevision([]byte(text)); ok {
		return string(content)
	}
	return text
}
