package outside

import (
	"fmt"
	"iter"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/rules"
)

// Audit knows the pull requests of a world without the rules.
type Audit struct {
	// Stopped counts the acts of people and checks that may have stopped a
	// change which was put on the tip.
	Stopped int
	// restacks counts the pushes that did nothing but put a change on another
	// tip, each a run of the checks of the forge.
	restacks int
	// seen are the newest looks that the project took, by task.
	seen map[forge.TaskID]*forge.PullRequest
	// patches has the patch of each commit that was proposed.
	patches map[string]string
	// opens are the head branches of the pull requests that were asked for, by
	// task.
	opens map[forge.TaskID]string
	// given has the wishes that a task was told of, by the event that told them.
	given map[string]string
	// asked are the requests of each task.
	asked map[forge.TaskID]*requests
	// outAt has the heads that were taken out of the merge queue, by what the forge
	// calls that.
	outAt map[string]string
	// threads are the remarks of each task that wait for their answer.
	threads map[forge.TaskID]*threads
	// adoptions are those of each task, and named has the commits that people named
	// to an intent and that were not adopted yet. Words counts what was said of them,
	// Replaced those whose commit was replaced, and Again those of a commit that had
	// been replaced before.
	named                  map[forge.IntentID][]string
	adoptions              map[forge.TaskID]*adoptions
	Words, Replaced, Again int
}

// requests are those of a task to merge, or for a file lock.
type requests struct {
	intent string
	// newest is the number of the newest one. Those up to void were withdrawn,
	// or a newer one took their place.
	newest, void int
}

// ask takes the requests of a record.
func (a *Audit) ask(rec *forge.Record) {
	take := func(ev *forge.Event, t forge.TaskID, number, void int) {
		r := a.asked[t]
		if r == nil {
			r = &requests{intent: ev.Actor}
			a.asked[t] = r
		}
		r.newest, r.void = max(r.newest, number), max(r.void, void)
	}
	for i := range rec.Events {
		switch m := rec.Events[i].Message.(type) {
		case *forge.QueueMerge:
			take(&rec.Events[i], m.Task, m.Number, m.Number-1)
		case *forge.LockFiles:
			take(&rec.Events[i], m.Task, m.Number, m.Number-1)
		case *forge.WithdrawRequests:
			take(&rec.Events[i], m.Task, m.Number, m.Number)
		case *forge.RunEnded:
			for _, r := range a.asked {
				if r.intent == rec.Events[i].Actor {
					r.void = r.newest
				}
			}
		default:
		}
	}
}

// pushed counts a push.
func (a *Audit) pushed(same bool) {
	if same {
		a.restacks++
	}
}

// Check returns an error if a record of the project has the forge merge what was
// not seen to be ready: the very commit, open, with its checks passed, asked to
// be changed by no person who may, and approved as no other patch than this; or
// what was withdrawn.
func (f *Forge) Check(rec *forge.Record) error {
	if f == nil {
		return nil
	}
	a := &f.Audit
	if a.seen == nil {
		a.seen, a.patches, a.opens = map[forge.TaskID]*forge.PullRequest{}, map[string]string{}, map[forge.TaskID]string{}
		a.given, a.asked, a.threads = map[string]string{}, map[forge.TaskID]*requests{}, map[forge.TaskID]*threads{}
		a.outAt = map[string]string{}
	}
	defer a.ask(rec) // what a record withdraws, it may have asked for before that
	a.saw(rec)
	if err := a.denied(rec); err != nil {
		return err
	}
	if err := a.wishes(rec); err != nil {
		return err
	}
	for i := range rec.Effects.Commands {
		c := &rec.Effects.Commands[i]
		switch c.Attempt.Step {
		case forge.StepOpenPull:
			if err := a.opened(c); err != nil {
				return err
			}
		case forge.StepMergePull:
			if why := a.unready(c); why != "" {
				return fmt.Errorf("%s is to be merged by the forge although %s", c.Attempt, why)
			}
		case forge.StepMerge:
			if why := a.moved(c); why != "" {
				return fmt.Errorf("%s puts a change on another tip although %s", c.Attempt, why)
			}
			if err := a.overwrites(c); err != nil {
				return err
			}
		default:
		}
	}
	return nil
}

// saw takes the looks of a record at pull requests, and the commits that were
// proposed.
func (a *Audit) saw(rec *forge.Record) {
	for i := range rec.Events {
		r := forge.As[*forge.Result](rec.Events[i].Message)
		if r == nil {
			continue
		}
		if m := forge.As[*forge.MergeResult](r.Output); m != nil && m.Outcome == forge.MergeProposed {
			a.patches[m.Commit] = m.PatchID
			a.took(r.Attempt)
		}
		if p := forge.As[*forge.PullRequest](r.Output); p != nil {
			if last := a.seen[r.Attempt.Task]; last == nil || !p.Seen.Before(last.Seen) {
				a.seen[r.Attempt.Task] = p
			}
			a.answered(r.Attempt, p)
			if p.Queue != nil && p.Queue.Out != "" && a.outAt[p.Queue.Out] == "" {
				a.outAt[p.Queue.Out] = p.Head
			}
		}
	}
}

// opened returns an error if a pull request is to be opened beside another one, or
// although that was withdrawn, or without the answers that it owes.
func (a *Audit) opened(c *forge.Command) error {
	if branch, known := a.opens[c.Attempt.Task]; known && branch != c.Pull().Branch {
		return fmt.Errorf("%s has pull requests of %s and of %s", c.Attempt.Task, branch, c.Pull().Branch)
	}
	a.opens[c.Attempt.Task] = c.Pull().Branch
	if a.isVoid(c) {
		return fmt.Errorf("%s is opened although that was withdrawn", c.Attempt)
	}
	return a.answers(c)
}

// moved returns why a change needs no other tip; empty if it may: what is in the
// merge queue is put on the tip there, unless its task asks for another merge.
func (a *Audit) moved(c *forge.Command) string {
	p, t := a.seen[c.Attempt.Task], a.of(c.Attempt.Task)
	in := c.Merge()
	if in.Landed == nil && p != nil && p.State == forge.PullOpen && p.Queue != nil && p.Queue.In && t.attempt.Number == c.Attempt.Number {
		return "it is in the merge queue"
	}
	return ""
}

// denied returns an error if a change is given up because the forge refuses our
// account: that is for a person to mend, and no fault of the change.
func (a *Audit) denied(rec *forge.Record) error {
	for i := range rec.Effects.Outbox {
		m := forge.As[*forge.MergeEnded](rec.Effects.Outbox[i].Message)
		if m != nil && m.Failure != nil && m.Failure.Reason == forge.FailAuth && rules.Of(rec).Has(rules.HeldPulls) {
			return fmt.Errorf("%s is given up because %s", m.Task, m.Failure.Message)
		}
	}
	return nil
}

// isVoid reports whether what a command is for was withdrawn, or asked for anew,
// before the record that issues it.
func (a *Audit) isVoid(c *forge.Command) bool {
	r := a.asked[c.Attempt.Task]
	return r != nil && c.Attempt.Number <= r.void
}

// wishes returns an error if a task is told twice to make its change again for
// the same words of a person about the same commit.
func (a *Audit) wishes(rec *forge.Record) error {
	for i := range rec.Effects.Outbox {
		ev := &rec.Effects.Outbox[i]
		m := forge.As[*forge.MergeEnded](ev.Message)
		if failedInQueue(m) {
			out := fmt.Sprintf("%s: out of the queue as %s", m.Task, m.Result.Pull.Queue.Out)
			if before := a.given[out]; before != "" && before != ev.ID {
				return fmt.Errorf("%s is made again twice because it was taken %s", m.Task, out)
			}
			a.given[out] = ev.ID
		}
		if m == nil || m.Result == nil || m.Result.Outcome != forge.MergeUnwanted {
			continue
		}
		for _, r := range m.Result.Pull.Reviews {
			wish := fmt.Sprintf("%s: %s of %s: %s", m.Task, r.Account, r.Commit, r.Text)
			if len(r.Remarks) > 0 { // the words have a line in them, which moves
				wish = fmt.Sprintf("%s: %s: %v", m.Task, r.Account, r.Remarks)
			}
			before := a.given[wish]
			if before != "" && before != ev.ID {
				return fmt.Errorf("%s is made again twice for the same wish, %s", m.Task, wish)
			}
			if before == "" {
				a.wait(m.Task, r.Remarks)
			}
			a.given[wish] = ev.ID
		}
	}
	return nil
}

// unready returns why what is to be merged was not seen to be ready; empty if it
// was.
func (a *Audit) unready(c *forge.Command) string {
	in, p := c.Pull(), a.seen[c.Attempt.Task]
	switch {
	case a.isVoid(c):
		return "that was withdrawn"
	case p == nil:
		return "nobody looked at it"
	case p.Head != in.Head:
		return "what was seen last is " + p.Head
	case p.State != forge.PullOpen:
		return "it is " + string(p.State)
	case failing(p):
		return "its checks have not passed"
	case p.Behind:
		return "it is behind"
	case p.Queue != nil && p.Queue.In:
		return "it is in the merge queue"
	case p.Queue != nil && p.Queue.Cause == outChecks && a.outAt[p.Queue.Out] == in.Head:
		return "its checks failed in the merge queue"
	}
	for _, r := range p.Reviews {
		switch {
		case r.May && r.Verdict == forge.PullChangesRequested:
			return r.Person + " asks for changes"
		case r.May && r.Verdict == forge.PullApproved && a.patches[r.Commit] != in.PatchID:
			return r.Person + " approved another patch"
		}
	}
	return ""
}

// End returns an error if, at the end, a pull request is merged and its task is
// not by all records, or more runs of the checks of the forge were caused than
// follow from the moves of the base branch: each puts one other change on the new
// tip, unless something stops that.
func (f *Forge) End(moves int, records iter.Seq[*forge.Record]) error {
	if f == nil {
		return nil
	}
	done, retries := ended(records)
	for _, p := range f.pulls {
		if p.State == forge.PullMerged && !done[p.attempt.Task] {
			return fmt.Errorf("pull request %d of %s is merged, and nothing says so", p.Number, p.attempt.Task)
		}
	}
	if most := moves + f.Stopped + retries; f.restacks > most {
		return fmt.Errorf("the checks of the forge ran %d times more than for each change once; want at most %d", f.restacks, most)
	}
	return nil
}

// ended returns the tasks whose change is merged, and how often something was begun
// again, because a person said so or a step failed.
func ended(records iter.Seq[*forge.Record]) (done map[forge.TaskID]bool, retries int) {
	done = map[forge.TaskID]bool{}
	for rec := range records {
		for _, ev := range rec.Events {
			switch m := ev.Message.(type) {
			case *forge.Retry, *forge.Resume, *forge.Cancel, *forge.Reject, *forge.LockFiles:
				retries++
			case *forge.Result:
				if out := forge.As[*forge.MergeResult](m.Output); out != nil && out.Outcome == forge.MergeDone {
					done[m.Attempt.Task] = true
				}
				if m.Failure() != nil {
					retries++
				}
			default:
			}
		}
	}
	return done, retries
}
