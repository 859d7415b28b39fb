// Package outside is the forge of a world whose changes are merged by pull
// requests, with the gateway that looks at it and the people who press its
// buttons.
//
// It is not in our hands: looks get lost, come twice, late and in another order;
// people merge, close, open again, push to our branches, ask for changes and
// approve, whether or not they may; checks end when they like, and fail. When
// the faults stop, checks pass, each look is told, and people are willing: they
// open again what they closed, take back what they pushed, and say that the
// changes they asked for were made.
package outside

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/pfl-forge/pfl-forge"
)

// Forge is the forge of one world. A nil one is that of a world whose changes
// are pushed.
type Forge struct {
	// Audit is for the checker.
	Audit

	rng *rand.Rand
	// denials says when our account is refused, until a person mends that.
	denials *rand.Rand
	// Policy is that of the project.
	Policy *forge.PullPolicy
	// approvals says that an approval is needed. The forge counts those of any
	// commit.
	approvals bool
	// reopens says that people open again at the forge what they closed.
	reopens bool
	// acts counts the happenings, and remarks what was said in threads.
	acts    int
	remarks int64

	branches map[string]*branch
	pulls    []*pull
	// looks are on their way to a runner.
	looks []*forge.Result
	// adopters are the people who want their commits merged; nil where none does.
	adopters *adopters
}

// branch is a head branch.
type branch struct {
	head, parent, patch string
	// ours is the commit that was pushed by an implementer last.
	ours string
}

// pull is a pull request.
type pull struct {
	forge.PullRequest
	queued

	// to and attempt are those of the step that made it.
	to      forge.Key
	attempt forge.Attempt
	// on is the commit that Checks and CI are of.
	on string
	// last is the text of the newest look that was told.
	last string
}

// New returns the forge of a world; nil in most.
func New(seed uint64) *Forge {
	if seed%16 != 3 {
		return nil
	}
	f := &Forge{rng: rand.New(rand.NewPCG(seed, 14)), denials: rand.New(rand.NewPCG(seed, 15)), branches: map[string]*branch{}}
	f.adopters, f.adoptions, f.named = newAdopters(seed), map[forge.TaskID]*adoptions{}, map[forge.IntentID][]string{}
	f.Policy = &forge.PullPolicy{Method: "fast-forward", By: "forge", Branch: "forge/{task}"}
	if f.rng.IntN(3) == 0 {
		f.Policy.By = "people"
	}
	if f.rng.IntN(2) == 0 {
		f.Policy.Checks = []string{"build"}
	}
	if seed%64 == 51 {
		f.Policy.Method, f.Policy.By = queue, "forge"
	}
	f.approvals, f.reopens = f.rng.IntN(3) == 0, f.rng.IntN(2) == 0
	return f
}

// Push takes that an implementer pushes a candidate to the branch of its task. It
// returns false, and does nothing, if another one has pushed there anything but the
// commit whose place may be taken.
func (f *Forge) Push(task forge.TaskID, head, parent, patch, over string) (name string, ok bool) {
	name = "forge/" + string(task)
	b := f.branches[name]
	if b == nil {
		b = &branch{}
		f.branches[name] = b
	}
	if b.head != "" && b.head != b.ours && b.head != head && b.head != over {
		return name, false
	}
	if b.head != head {
		f.pushed(b.patch == patch)
	}
	*b = branch{head: head, parent: parent, patch: patch, ours: head}
	f.adopters.at(name, head)
	return name, true
}

// Do carries out a step of the gateway and returns its answer. merge puts the
// head on the base branch.
func (f *Forge) Do(c *forge.Command, tip string, now time.Time, merge func(head string) string) forge.Output {
	in := c.Pull()
	p := f.find(in.Branch)
	b := f.branches[in.Branch]
	switch {
	case f.acts < wild && f.denials.IntN(8) == 0:
		return &forge.Failure{Reason: forge.FailAuth, Message: "the token is not taken"}
	case c.Attempt.Step == forge.StepOpenPull && p == nil:
		if b == nil || b.head != in.Head {
			return &forge.Failure{Reason: forge.FailConfig, Message: "the branch was changed by another one"}
		}
		p = &pull{PullRequest: forge.PullRequest{
			Number: len(f.pulls) + 1, Branch: in.Branch, Base: in.Base, State: forge.PullOpen,
		}}
		f.pulls = append(f.pulls, p)
	case p == nil:
		return &forge.Failure{Reason: forge.FailConfig, Message: "there is no pull request"}
	case c.Attempt.Step == forge.StepOpenPull && p.State == forge.PullClosed && in.Number == p.Number:
		p.State, p.By = forge.PullOpen, ""
	}
	if c.Attempt.Step == forge.StepOpenPull {
		p.to, p.attempt = c.To, c.Attempt
		p.queued.in = false
	}
	s := f.look(p, tip, now)
	if f.isQueue() {
		if c.Attempt.Step == forge.StepMergePull && mayMerge(s, &in, in.Parent) {
			p.put()
		}
		return f.look(p, tip, now)
	}
	if c.Attempt.Step == forge.StepMergePull && mayMerge(s, &in, tip) {
		p.merge(merge, "pfl-forge")
		return f.look(p, tip, now)
	}
	return s
}

// mayMerge reports whether a gateway has the forge merge what it was told to
// merge, by what it sees at that moment: what people and checks did since the
// rules decided that counts.
func mayMerge(s *forge.PullRequest, in *forge.PullInput, tip string) bool {
	return s.State == forge.PullOpen && s.Head == in.Head && tip == in.Parent && s.Blocked == "" && !asked(s) && !failing(s)
}

// failing reports whether a check has not passed.
func failing(p *forge.PullRequest) bool {
	for _, c := range p.Checks {
		if c.State != forge.PullCheckPassed {
			return true
		}
	}
	return len(p.Checks) == 0
}

// merge puts the head on the base branch, and reports whether that is possible:
// not if it conflicts with what is there.
func (p *pull) merge(merge func(head string) string, by string) bool {
	commit := merge(p.Head)
	if commit == "" {
		return false
	}
	p.State, p.By, p.MergeCommit = forge.PullMerged, by, commit
	return true
}

// find returns the pull request of a branch; nil if there is none.
func (f *Forge) find(name string) *pull {
	for _, p := range f.pulls {
		if p.Branch == name {
			return p
		}
	}
	return nil
}

// look returns everything that the forge shows of a pull request.
func (f *Forge) look(p *pull, tip string, now time.Time) *forge.PullRequest {
	if b := f.branches[p.Branch]; p.State != forge.PullMerged {
		if p.Head = b.head; p.on != p.Head { // a run of the checks for each head
			p.on, p.Checks = p.Head, []forge.PullCheck{{Name: "build", State: forge.PullCheckPending}}
		}
		p.Behind = b.parent != tip
	}
	shown := p.PullRequest
	s := &shown
	s.Checks = append([]forge.PullCheck(nil), p.Checks...)
	s.Reviews = append([]forge.PullReview(nil), p.Reviews...)
	for i := range s.Reviews {
		if r := &s.Reviews[i]; len(r.Remarks) > 0 { // their lines are others at each head
			r.Text = fmt.Sprintf("a.txt:%.6s: %s", s.Head, r.Text)
		}
	}
	s.Seen = now
	if f.isQueue() {
		f.queue(p, s)
	}
	if s.State != forge.PullOpen {
		s.Behind = false
		return s
	}
	if f.approvals && !approved(p) {
		s.Blocked = "it has 0 of 1 approvals"
	}
	return s
}

// open returns the pull requests that are not merged.
func (f *Forge) open() (list []*pull) {
	for _, p := range f.pulls {
		if p.State != forge.PullMerged {
			list = append(list, p)
		}
	}
	return list
}

// approved reports whether the forge counts an approval.
func approved(p *pull) bool {
	for _, r := range p.Reviews {
		if r.Verdict == forge.PullApproved && r.May {
			return true
		}
	}
	return false
}

// sendLook sends a look on its way, if it shows anything that was not told.
func (f *Forge) sendLook(p *pull, tip string, now time.Time) bool {
	s := f.look(p, tip, now)
	content := *s
	content.Seen = time.Time{}
	text := fmt.Sprintf("%+v %+v", content, p.attempt)
	if q := content.Queue; q != nil { // where it is in memory is nothing that is shown
		content.Queue = nil
		text = fmt.Sprintf("%+v %+v %+v", content, *q, p.attempt)
	}
	if text == p.last || p.attempt == (forge.Attempt{}) {
		return false
	}
	p.last = text
	f.looks = append(f.looks, &forge.Result{To: p.to, Attempt: p.attempt, Replica: "g1", Output: s})
	return true
}

// wild is how often something happens before people and checks are willing.
const wild = 60

// Wild reports whether anything may happen still.
func (f *Forge) Wild() bool { return f != nil && f.acts < wild && len(f.open()) > 0 }

// NextLook returns the next look that arrives; nil if none does. While there are
// faults it may be any, and come again.
func (f *Forge) NextLook() *forge.Result {
	faults := f.Wild()
	if f == nil || len(f.looks) == 0 {
		return nil
	}
	i := 0
	if faults {
		i = f.rng.IntN(len(f.looks))
	}
	r := f.looks[i]
	if !faults || f.rng.IntN(4) > 0 {
		f.looks = append(f.looks[:i], f.looks[i+1:]...)
	}
	if faults && f.rng.IntN(4) == 0 {
		f.numbered(r).last = "" // lost: the next sweep looks again
		return nil
	}
	return r
}

// numbered returns the pull request of a look.
func (f *Forge) numbered(r *forge.Result) *pull {
	return f.pulls[forge.As[*forge.PullRequest](r.Output).Number-1]
}

// Calm has the forge go on while nothing else goes wrong, and returns false if
// there is nothing to do: all checks pass, all looks are told, and people are
// willing. merge puts what a person merges on the base branch.
func (f *Forge) Calm(tip string, now time.Time, merge func(head string) string) bool {
	for _, p := range f.pulls {
		if f.calm(p, tip, now, merge) || f.sendLook(p, tip, now) {
			return true
		}
	}
	return false
}

// checksEnd has the checks of a pull request pass, or fail now and then.
func (f *Forge) checksEnd(p *pull) {
	for i := range p.Checks {
		p.Checks[i].State = forge.PullCheckPassed
		if f.rng.IntN(6) == 0 {
			p.Checks[i] = forge.PullCheck{Name: "build", State: forge.PullCheckFailed, Output: "FAIL"}
			f.Stopped++
		}
	}
}
