package outside

import (
	"fmt"
	"time"

	"github.com/pfl-forge/pfl-forge"
)

// calm lets people and checks do the next thing about a pull request, and
// returns false if there is none.
func (f *Forge) calm(p *pull, tip string, now time.Time, merge func(head string) string) bool {
	b := f.branches[p.Branch]
	if p.State == forge.PullMerged {
		return false
	}
	if f.Adopts() && b.head != b.ours && f.sendLook(p, tip, now) || f.stubborn(p) {
		return true
	}
	if b.head != b.ours {
		b.head = b.ours // whoever pushed takes it back
		return true
	}
	if p.State == forge.PullClosed {
		if f.reopens {
			p.State, p.By = forge.PullOpen, ""
		}
		return f.reopens // otherwise a person retries the intent, which has to wait for that
	}
	s := f.look(p, tip, now)
	if p.passes(s.Head) {
		return true
	}
	if f.approvals && !approved(p) {
		p.review("grace", true, forge.PullApproved, "")
		return true
	}
	if f.isQueue() {
		return f.queueCalms(p, merge)
	}
	if f.Policy.By == "people" && !s.Behind && s.Blocked == "" && !asked(s) {
		return p.merge(merge, "ada")
	}
	return false
}

// passes has one more check pass, or then one more reviewer approve the commit
// that is there now. It returns false if all have.
func (p *pull) passes(head string) bool {
	for i, c := range p.Checks {
		if c.State != forge.PullCheckPassed {
			p.Checks[i].State = forge.PullCheckPassed
			return true
		}
	}
	for i, r := range p.Reviews {
		if r.May && r.Commit != head {
			p.Reviews[i].Verdict, p.Reviews[i].Commit, p.Reviews[i].Remarks = forge.PullApproved, head, nil
			return true
		}
	}
	return false
}

// asked reports whether a person who may asks for changes.
func asked(p *forge.PullRequest) bool {
	for _, r := range p.Reviews {
		if r.May && r.Verdict == forge.PullChangesRequested {
			return true
		}
	}
	return false
}

// review writes the newest review of an account.
func (p *pull) review(who string, may bool, v forge.PullVerdict, text string) {
	r := forge.PullReview{Person: who, Account: who + "-1", May: may, Verdict: v, Commit: p.Head, Text: text}
	for i := range p.Reviews {
		if p.Reviews[i].Account == r.Account {
			p.Reviews[i] = r
			return
		}
	}
	p.Reviews = append(p.Reviews, r)
}

// wish has a person ask for changes, mostly in a thread, as where a gateway names
// the remarks of people.
func (f *Forge) wish(p *pull) {
	f.Stopped++
	text := fmt.Sprintf("shorter, by %d", f.rng.IntN(3))
	p.review("ada", true, forge.PullChangesRequested, text)
	if f.acts%3 > 0 {
		f.remarks++
		p.remark("ada", f.remarks, text)
	}
}

// remark has the newest review of a person be a remark in a thread.
func (p *pull) remark(who string, thread int64, text string) {
	for i := range p.Reviews {
		if r := &p.Reviews[i]; r.Person == who {
			r.Remarks = []forge.PullRemark{{Digest: fmt.Sprint(thread)}, {Thread: thread, Digest: text}}
		}
	}
}

// Act lets anything happen at the forge, now and then. merge puts what a person
// merges on the base branch, whatever that is; amend makes a commit of another one
// on top of one.
func (f *Forge) Act(tip string, now time.Time, merge, amend func(head string) string) {
	open := f.open()
	if f.rng.IntN(2) > 0 {
		return
	}
	f.acts++
	p := open[f.rng.IntN(len(open))]
	b := f.branches[p.Branch]
	f.look(p, tip, now)
	switch n := f.rng.IntN(40); {
	case n < 12: // checks end
		f.checksEnd(p)
	case n < 16:
		p.review("grace", true, forge.PullApproved, "")
	case n == 16:
		f.wish(p)
	case n == 17: // a stranger, whom nobody has to heed
		p.review("", false, []forge.PullVerdict{forge.PullApproved, forge.PullChangesRequested}[f.rng.IntN(2)], "no")
	case n == 18 && p.State == forge.PullOpen:
		p.State, p.By = forge.PullClosed, "ada"
		f.Stopped++
	case n == 19 && p.State == forge.PullClosed:
		p.State, p.By = forge.PullOpen, ""
	case n == 20 && p.State == forge.PullOpen: // a person pushes to our branch
		b.head = amend(b.head)
		f.adopters.at(p.Branch, b.head)
		f.Stopped++
	case n == 21:
		b.head = b.ours // and takes it back
	case n == 22 && p.State == forge.PullOpen && b.head == b.ours: // a person merges, whether or not it passed, and wherever the base branch is
		if p.merge(merge, "ada") {
			f.Stopped++
		}
	default:
		f.queueActs(p, n, merge)
	}
	if f.rng.IntN(2) == 0 {
		f.sendLook(p, tip, now)
	}
}
