package mergequeue

import (
	"slices"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/rules"
	"github.com/pfl-forge/pfl-forge/verdict"
)

// The train is the changes that wait behind the one that is being merged, each with a car: a
// trial that verifies it on top of those before it, while these are not merged yet. What a
// trial finds is a hint. Only a merge answers a task, and it takes a finding where the trees
// show that it is about exactly what is merged; otherwise it verifies as it does without any
// train. So nothing here decides what may be merged, only what is run beforehand:
//
//	          Couple              Result
//	no car ----------> Trying -------------> Passed
//	  ^                  |  |
//	  |                  |  +--------------> Stopped: in conflict, another patch, or verify failed twice on the same stack
//	  |                  +-----------------> Untested: the trial itself failed
//	  |
//	  +--- what is ahead is not what the car was put on top of (Couple, Ended)
//
// Where verify failed once, the car is doubted: it is tried once more on the same stack,
// since a check may fail now and then, and to put all those behind it together anew is dear.
// Until that ends no other trial begins behind it, because what fails there may be its fault.
//
// A stopped car delays no other: those behind it are put together without it.
// It is not blamed either, since the fault may be of one ahead. When those are
// merged its turn comes, and its merge finds out.

// CarState is how far the trial of a change is.
type CarState string

// The states of a car. A car with none of them has been uncoupled: it has to be tried anew.
const (
	// Trying: a worker has the trial, or will get it.
	Trying CarState = "trying"
	// Passed: the merge may take what was found, once those ahead are merged.
	Passed CarState = "passed"
	// Stopped: the change did not pass on top of those ahead. The changes behind it are tried
	// without it, and its own merge finds out which change is at fault.
	Stopped CarState = "stopped"
	// Untested: the trial failed, which says nothing about the change. It is ahead of others still.
	Untested CarState = "untested"
)

// windows is how many times as many changes have a car as are tried at once.
const windows = 2

// Car is the place of a request in the train.
type Car struct {
	State CarState
	// Claims counts how often the request was issued to a worker, each time for a trial.
	Claims int
	// Doubted says that verify has failed once on top of these ahead, Failed has that run.
	Doubted bool
	Failed  *forge.CheckRun
	// Searched says that the change at fault is looked for among it and those before it
	// of which nothing is known: verify failed on its tree, which is that of all of them.
	Searched bool
	// Since are the Claims of the change right ahead when Failed was known: a
	// trial of it that began after that has a later one.
	Since int
	// Before is the run in which those ahead passed, if that was after Failed;
	// nil if there is none.
	Before *forge.CheckRun
	// Ahead are the changes that it was put on top of and that are not merged yet, in order.
	Ahead []Ref
	// Riders are the last of Ahead, as far as the trial verifies them as well.
	Riders []Ref
	// Within is how many changes it may be verified together with, itself
	// counted, after a batch of more did not pass; 0 if none failed.
	Within int
	// Found has the change as the trial verified it, if it passed, or if verify
	// failed twice on one tree: then its report has both runs.
	Found *forge.Rebase
	// Executor is where that ran.
	Executor forge.Executor
}

// Ref names a request to merge.
type Ref struct {
	Task   forge.TaskID
	Number int
}

// ref returns the name of the request.
func (r *Request) ref() Ref { return Ref{r.Task, r.Number} }

// Attempt returns the attempt that the result of the request's trial has to be about.
func (r *Request) Attempt() forge.Attempt {
	return forge.Attempt{Task: r.Task, Step: forge.StepMerge, Number: r.Number, Claim: r.Car.claims()}
}

// claims returns how often the request was issued.
func (c *Car) claims() int {
	if c == nil {
		return 0
	}
	return c.Claims
}

// within returns the limit of a car after a batch did not pass; 0 if there is none.
func (c *Car) within() int {
	if c == nil {
		return 0
	}
	return c.Within
}

// anew returns the car of a change that is to be tried on top of these ahead.
// In a doubted car it is tried once more.
func (c *Car) anew(ahead []Ref) *Car {
	next := &Car{Claims: c.claims(), Within: c.within(), Ahead: slices.Clone(ahead)}
	if c.isDoubted() {
		next.Doubted, next.Failed, next.Searched, next.Since, next.Before = true, c.Failed, c.Searched, c.Since, c.Before
	}
	return next
}

// is reports whether the car is in a state.
func (c *Car) is(state CarState) bool { return c != nil && c.State == state }

// isDoubted reports whether the trial is made once more, or the merge itself
// finds out, because its turn has come.
func (c *Car) isDoubted() bool { return c != nil && c.Doubted && (c.State == Trying || c.State == "") }

// mayFinish reports whether a trial is under way, of the change or of its batch, whose
// finding the merge could take: it is waited for, so that nothing is verified twice.
func (c *Car) mayFinish() bool { return (c.is(Trying) || c.is(Riding)) && len(c.Ahead) == 0 }

// finding returns the change as a trial verified it, for a merge to take; nil if there is none.
func (c *Car) finding() *forge.Rebase {
	if c.is(Passed) && len(c.Ahead) == 0 {
		return c.Found
	}
	return nil
}

// failure returns the change as verify failed on it twice in its trials, and
// where that ran; nil if it did not. The merge looks whose fault that is, and
// runs nothing on the change again if its tree is the same.
func (c *Car) failure() (*forge.Rebase, forge.Executor) {
	if c.is(Stopped) && c.Found != nil {
		return c.Found, c.Executor
	}
	return nil, ""
}

// Finding returns the change as its trial verified it, and where that ran; nil
// if the merge has to verify by itself.
func (m *Merge) Finding() (*forge.Rebase, forge.Executor) {
	if found := m.Car.finding(); found != nil {
		return found, m.Car.Executor
	}
	return m.Verified, m.VerifiedIn
}

// tried returns the request whose trial a result is about; nil if it is about
// none that is under way.
func (s *State) tried(r *forge.Result) *Request {
	in := forge.As[*forge.MergeResult](r.Output)
	if r.IsStart() || in != nil && in.Outcome == forge.MergeDone {
		return nil // a commit on the base branch is a fact, whoever was asked for a trial
	}
	for _, q := range s.Queued {
		if q.Car.is(Trying) && q.Attempt() == r.Attempt {
			return q
		}
	}
	return nil
}

// take notes the result of the request's trial.
func (r *Request) take(by rules.Version, result *forge.Result) {
	c, in := r.Car, forge.As[*forge.MergeResult](result.Output)
	c.State = Untested
	switch {
	case in == nil || in.Outcome != forge.MergeTried || in.Candidate == nil: // or those ahead do not go together
	case len(in.Candidate.Conflicts) > 0 || in.Candidate.PatchID != r.Change.PatchID:
		c.State = Stopped
	case verdict.Failing(in.Candidate.Verify) != "" && !c.Doubted && by.Has(rules.DoubtedCar):
		c.State, c.Doubted, c.Failed = "", true, verdict.TrialOf(in.Candidate)
	case verdict.Failing(in.Candidate.Verify) != "":
		c.State = Stopped
		if twice := verdict.Twice(c.Failed, c.Before, in.Candidate); twice != nil && by.Has(rules.FailedTrials) {
			c.Found, c.Executor = twice, result.Executor
		}
	default:
		c.State, c.Found, c.Executor = Passed, in.Candidate, result.Executor
	}
}

// ended tells the train how a merge ended. A change that is merged is not ahead any
// more. What was put on top of something else than the base branch is now is uncoupled.
func (s *State) ended(r *Request, result *forge.MergeResult) {
	if result == nil || result.Outcome != forge.MergeDone {
		return // it is gone, as Couple sees
	}
	var moved bool
	for _, q := range s.Queued {
		c := q.Car
		switch {
		case c == nil:
		case len(c.Ahead) == 0 || c.Ahead[0] != r.ref():
			s.uncouple(q)
		case slices.Contains(c.Riders, r.ref()), moved && batches{s}.batch() > 1 && (!c.Doubted || c.Searched) && c.State != Stopped:
			s.uncouple(q) // its batch is another one now, or what all of them stand on is, and they are verified together anew
		case len(c.Ahead) == 1 && c.is(Passed) && result.Tree != "" && c.Found.BaseTree != result.Tree:
			s.uncouple(q) // somebody outside has pushed
			moved = true
		default:
			c.Ahead = slices.Delete(c.Ahead, 0, 1)
		}
	}
}

// Couple puts the train together after a step: the first changes that may be merged
// get a car each, behind the merge that is under way and on top of those before
// them that have not stopped. A car that was put on top of anything else is
// uncoupled. It returns the requests whose trials to issue and the trials to
// cancel. While the project is paused, or the base branch is busy, no trial begins.
func (s *State) Couple(by rules.Version, paused bool) (issue []*Request, cancel []forge.Attempt) {
	var ahead []Ref
	free := s.parallel()
	if s.Current != nil {
		free--
		if !s.Current.Car.is(Stopped) && s.Current.Change.Pull == nil {
			ahead = append(ahead, s.Current.ref())
		}
	}
	list, together := s.train(), batches{s}
	together.compare(list, ahead)
	together.dismount()
	groups := groups{batches: together, behind: s.Current != nil && (s.Current.Car.isDoubted() || s.Current.Car.isSuspect())}
	groups.more = together.waitBehind(list) && by.Has(rules.WholeBatch)
	groups.unsure = len(ahead) > 0 && together.verifies()
	for i, q := range list {
		untried := q.Car == nil || q.Car.State == ""
		if untried {
			q.Car = q.Car.anew(ahead)
			groups.add(list[i:])
		} else if groups.close(); q.Car.State == Trying {
			free--
		}
		if !q.Car.is(Stopped) {
			ahead = append(ahead, q.ref())
		}
		groups.unsure = groups.unsure || q.Car.is(Trying)
		groups.behind = groups.behind || q.Car.isDoubted() || !untried && q.Car.isSuspect()
	}
	// The oldest come first: what is found of them is needed first.
	if !paused && !(turns{s}).isBusy() {
		issue = groups.board(free)
	}
	cancel, s.void = s.void, nil
	return issue, cancel
}

// compare uncouples each car that was put on top of anything else than those
// before it that have not stopped.
//
// What a car stands on is compared, not tracked: whatever happened to those
// ahead, merged, withdrawn, locked out or made anew, is seen here, and a
// mistake elsewhere costs a trial and no more.
func (s batches) compare(list []*Request, ahead []Ref) {
	ahead = slices.Clone(ahead)
	for _, q := range list {
		if q.Car != nil && !slices.Equal(q.Car.Ahead, ahead) {
			s.uncouple(q)
		}
		if !q.Car.is(Stopped) {
			ahead = append(ahead, q.ref())
		}
	}
}

// board has as many trials begin as there are places, one for each group that
// is not to wait, and returns them.
func (g *groups) board(free int) (issue []*Request) {
	for i, group := range g.list {
		if len(issue) >= free {
			break
		}
		if i >= g.shut && !g.begins(group) {
			continue
		}
		last := group[len(group)-1]
		for _, q := range group[:len(group)-1] {
			q.Car.State = Riding
			last.Car.Riders = append(last.Car.Riders, q.ref())
		}
		last.Car.State = Trying
		last.Car.Claims++
		issue = append(issue, last)
	}
	return issue
}

// parallel returns how many changes may be verified at once.
func (s *State) parallel() int { return max(s.Parallel, 1) }

// train returns the requests that have a place in the train. The others are not tried:
// what is known of them stays, because a file lock may come and go while nothing
// changes ahead of them. A change with a pull request is none of it: when that is
// merged is for others to say. The train is longer than what is tried at once, so that
// those whose trial has ended need not have been merged before the next one begins.
func (s *State) train() []*Request {
	list := batches{s}.inTrain()
	for _, q := range s.Queued {
		if (q.Car.is(Trying) || q.Car.is(Riding)) && !slices.Contains(list, q) {
			s.uncouple(q)
		}
	}
	return list
}

// inTrain returns the same, and leaves the cars of others as they are.
func (s batches) inTrain() (list []*Request) {
	for _, q := range s.Queued {
		if len(list) < windows*max(s.parallel(), s.batch()) && s.mayTry(q) {
			list = append(list, q)
		}
	}
	return list
}

// mayTry reports whether a request may have a place in the train, if that is long enough.
func (s batches) mayTry(q *Request) bool {
	return s.parallel() > 1 && q.Change.Pull == nil && s.mayMerge(q)
}

// waitBehind reports whether there are requests which have no place in the
// train, whose list is given, just because that is not longer.
func (s batches) waitBehind(list []*Request) bool {
	return slices.ContainsFunc(s.Queued, func(q *Request) bool { return s.mayTry(q) && !slices.Contains(list, q) })
}

// uncouple takes back what a request's car stands for. It will be tried anew.
func (s *State) uncouple(q *Request) {
	if q.Car.is(Trying) {
		s.void = append(s.void, q.Attempt())
	}
	if q.Car != nil {
		q.Car = &Car{Claims: q.Car.Claims}
	}
}

// Trials returns the requests whose trials are under way.
func (s *State) Trials() (list []*Request) {
	for _, q := range s.Queued {
		if q.Car.is(Trying) {
			list = append(list, q)
		}
	}
	return list
}

// Ahead returns the changes that a request's trial is put on top of.
func (s *State) Ahead(q *Request) (list []forge.QueueMerge) {
	for _, ref := range q.Car.Ahead {
		if s.Current != nil && s.Current.ref() == ref {
			list = append(list, *s.Current.Change)
		}
		for _, other := range s.Queued {
			if other.ref() == ref {
				list = append(list, *other.Change)
			}
		}
	}
	return list
}
