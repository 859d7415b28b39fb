package mergequeue

import (
	"slices"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/rules"
	"github.com/pfl-forge/pfl-forge/verdict"
)

// A batch is a group of changes that follow each other in the train and that one run of the verify
// commands decides about (ADR 0090). Only the last of them has a trial, and the others ride on it:
//
//	                       the last one passes, and each is the patch that was reviewed
//	Trying, Riding ... Riding ----------------------------------------------------------> Passed, each with a finding of its own
//	       ^     |
//	       |     | anything else
//	       +-----+ in groups of half the size at most; what does not fit, or may not ride, alone
//
// A batch that fails blames no change of it: a trial of one change alone finds out whose fault it
// is. Which one, is searched for (ADR 0136): the first half is tried. What passes is known, and
// lands. What fails is searched in the same way. Where the first half passes, the second is known
// to hold the fault, without a run: the last change, on whose tree verify failed, is put in
// doubt, and half of those before it are tried next. So in the end a change fails right behind
// one that passed, and is tried once more, by itself, since a check may fail now and then:
//
//	                1 2 3 4 5 6 7 8    1-8 fails
//	1-4 passes     |       |           5-8 holds it, as 8 shows
//	1-6 fails      |       |   |       5-6 holds it, as 6 shows
//	1-5 passes     |       | | |       6 failed, on top of 5 that passed: once more; 7 and 8 are put together anew with those that wait
//
// While the fault is looked for, no trial begins behind it, as behind a change
// in doubt, and those that were under way are cancelled: they stand on it.
//
// While anything is being verified, what comes gathers until a batch is full.
// So a queue with one change waits for no other.

// Riding is the state of a car whose change is verified with a later one.
const Riding CarState = "riding"

// batches puts changes together that are verified by one run.
type batches struct{ *State }

// batch returns how many changes one run may verify. Without a train there are no batches.
func (s batches) batch() int {
	if s.parallel() < 2 {
		return 1
	}
	return max(s.Batch, 1)
}

// limit returns how large a group with a request may be. What has checks of its
// own is verified by itself: they run on its tree alone.
func (s batches) limit(q *Request) int {
	switch {
	case len(q.Change.Checks) > 0, q.Car.isDoubted():
		return 1
	case q.Car != nil && q.Car.Within > 0:
		return min(q.Car.Within, s.batch())
	}
	return s.batch()
}

// joins reports whether a request may be verified together with those before it.
func (s batches) joins(group []*Request, q *Request) bool {
	most := s.limit(q)
	for _, r := range group {
		most = min(most, s.limit(r))
	}
	return len(group) > 0 && len(group) < most
}

// groups are the changes of a train that are to be tried, as they are to be verified together.
type groups struct {
	batches

	list [][]*Request
	// shut counts the groups, from the first on, which no further change can join.
	shut int
	// open says that the next change may join the last group, and behind that
	// none begins any more: what fails there may be the fault of one ahead.
	open, behind bool
	// unsure says that a change ahead is being verified. Until that ends nothing is looked
	// for, since what failed may be its fault. A group of the list is about to be, too.
	unsure bool
	// more says that changes wait behind the train. They will join its last
	// group when those ahead are merged.
	more bool
	// most bounds the last group, where a change is looked for; 0 if it has no bound of its own.
	most int
}

// add adds the first change of the rest of the train, which is to be tried.
func (g *groups) add(rest []*Request) {
	q := rest[0]
	if last := len(g.list) - 1; g.open {
		if g.joins(g.list[last], q) && (g.most == 0 || len(g.list[last]) < g.most) {
			g.list[last] = append(g.list[last], q)
			return
		}
		g.behind = g.behind || slices.ContainsFunc(g.list[last], func(r *Request) bool { return r.Car.isSuspect() })
	}
	g.close()
	g.most = searchNext(rest)
	g.behind = g.behind || (g.unsure || len(g.list) > 0) && (g.most > 0 || q.Car.Searched)
	if g.open = !g.behind; g.open {
		g.list = append(g.list, []*Request{q})
	}
}

// close has the groups that there are wait for no further change: the next one does not join them.
func (g *groups) close() { g.open, g.shut = false, len(g.list) }

// begins reports whether a group is not to wait for more changes: it is full, it is to
// find out which one is at fault, or nothing else is being verified and no more are there.
func (g *groups) begins(group []*Request) bool {
	full := func(q *Request) bool { return len(group) >= g.limit(q) || q.Car.isSuspect() }
	return slices.ContainsFunc(group, full) || len(g.Trials()) == 0 && !g.verifies() && !g.more
}

// verifies reports whether the merge under way has to verify its change, as far as is known.
func (s batches) verifies() bool {
	if s.Current == nil {
		return false
	}
	found, _ := s.Current.Finding()
	return found == nil
}

// gathers reports whether the change whose turn it is waits for those behind it, to be verified
// together with them. Couple has that trial begin, or another one is under way and ends.
func (s batches) gathers(first *Request) bool {
	if s.batch() < 2 || s.Refused != nil || turns(s).isBusy() || first.Moves > 0 || first.Verified != nil {
		return false
	}
	list := s.inTrain()
	if len(list) > 0 && list[0] == first && (searchNext(list) > 0 || first.Car.isDoubted() && first.Car.Searched) {
		return true // it is tried by itself, or with some of those it failed together with
	}
	return len(list) > 1 && list[0] == first && first.Car.isOpen() && list[1].Car.isOpen() && s.joins(list[:1], list[1])
}

// isOpen reports whether the next Couple puts the car together anew, if its change is the first.
func (c *Car) isOpen() bool {
	return c == nil || c.State == "" || len(c.Ahead) > 0 && (c.State == Trying || c.State == Riding || c.State == Passed)
}

// isSuspect reports whether the car was in a batch that failed, and is in one
// of which nothing is known yet.
func (c *Car) isSuspect() bool {
	return c != nil && c.Within > 0 && (c.State == "" || c.State == Trying || c.State == Riding)
}

// batchOf returns the changes that the trial of a request verifies, itself the
// last. It is shorter if one of them is gone.
func (s batches) batchOf(q *Request) (group []*Request) {
	for _, ref := range q.Car.Riders {
		for _, r := range s.Queued {
			if r.ref() == ref && r.Car.is(Riding) {
				group = append(group, r)
			}
		}
	}
	return append(group, q)
}

// dismount takes the cars back that ride on a trial which is not under way any more.
func (s batches) dismount() {
	rides := map[Ref]bool{}
	for _, q := range s.Trials() {
		for _, ref := range q.Car.Riders {
			rides[ref] = true
		}
	}
	for _, q := range s.Queued {
		if q.Car.is(Riding) && !rides[q.ref()] {
			s.uncouple(q)
		}
	}
}

// take notes the result of a trial, of one change or of several.
func (s batches) take(by rules.Version, q *Request, result *forge.Result) {
	searched := s.batch() > 1 && by.Has(rules.SearchedBatch)
	if len(q.Car.Riders) > 0 {
		s.takeBatch(q, result, searched)
		return
	}
	q.take(by, result)
	if searched && q.Car.isDoubted() {
		s.mark(q)
	}
	s.follow(q)
}

// takeBatch notes the result of a trial of several changes. searched says that the one at
// fault is searched for if verify failed; by the rules of before, both halves are tried.
func (s batches) takeBatch(q *Request, result *forge.Result, searched bool) {
	group, in := s.batchOf(q), forge.As[*forge.MergeResult](result.Output)
	var found []forge.Rebase
	if in != nil && in.Outcome == forge.MergeTried {
		found = in.Batch
		if in.Candidate != nil {
			found = append(slices.Clone(found), *in.Candidate)
		}
	}
	switch {
	case !fitTogether(group, found):
		halve(group, found)
		return
	case verdict.Failing(found[len(found)-1].Verify) == "":
	case searched:
		s.search(group, &found[len(found)-1])
		return
	default:
		halve(group, found)
		return
	}
	last := &found[len(found)-1]
	for i, r := range group {
		f := found[i]
		if r != q {
			f.Together, f.Verify = last.Tree, shared(last.Verify)
		}
		r.Car.State, r.Car.Found, r.Car.Executor, r.Car.Riders = Passed, &f, result.Executor, nil
	}
	s.follow(q)
}

// follow notes that a change passed for the one right behind it, if that failed before on
// top of it and is to be tried once more. The pass is one between the two only if its
// trial began after the first failure was known, and ended before the second trial began.
func (s batches) follow(q *Request) {
	for _, r := range s.Queued {
		c := r.Car
		if q.Car.is(Passed) && c.isDoubted() && c.Searched && c.State == "" && c.right() == q.ref() && q.Car.Claims > c.Since {
			c.Before = verdict.PassOf(q.Car.Found)
		}
	}
}

// mark notes that verify failed on the tree of a change, so that it is tried
// once more before its turn comes.
func (s batches) mark(q *Request) {
	c := q.Car
	c.Searched = true
	for _, r := range s.Queued {
		if r.ref() == c.right() {
			c.Since = r.Car.claims()
		}
	}
}

// right returns the change right ahead of a car; zero if there is none.
func (c *Car) right() Ref {
	if len(c.Ahead) == 0 {
		return Ref{}
	}
	return c.Ahead[len(c.Ahead)-1]
}

// shared returns the report as far as it is of a change that was verified
// together with another one. The other's proof and checks are its own.
func shared(v *forge.VerifyReport) *forge.VerifyReport {
	if v == nil {
		return nil
	}
	return &forge.VerifyReport{Passed: v.Passed, Runs: v.Runs}
}

// fitTogether reports whether a trial found that each change of a group fits on
// the one before, as it was reviewed. The worker is believed that it ran the
// commands on the last one; which changes it is about is compared.
func fitTogether(group []*Request, found []forge.Rebase) bool {
	if len(group) != len(found) {
		return false
	}
	for i := range found {
		f := &found[i]
		if misfits(group[i], f) || f.Tree == "" || i > 0 && f.BaseTree != found[i-1].Tree {
			return false
		}
	}
	return true
}

// misfits reports whether a change cannot be decided about with others: it is
// in conflict, or another patch there, or it touches what verify goes by.
func misfits(q *Request, f *forge.Rebase) bool {
	return len(f.Conflicts) > 0 || f.PatchID != q.Change.PatchID || len(f.Guarded) > 0
}

// halve has the changes of a batch that did not pass tried in smaller groups.
// Where single ones do not fit, it is those that are tried alone.
func halve(group []*Request, found []forge.Rebase) {
	var odd int
	for i, q := range group {
		c := q.Car
		q.Car = &Car{Claims: c.Claims, Ahead: c.Ahead, Within: c.Within}
		if i < len(found) && misfits(q, &found[i]) {
			q.Car.Within = 1
			odd++
		}
	}
	if odd > 0 {
		return
	}
	for _, q := range group {
		q.Car.Within = (len(group) + 1) / 2
	}
}

// search has it found out which change of a batch makes verify fail. The last
// one is in doubt, since verify failed once on its tree: where those before it
// pass, it is tried once more on top of them, which is that very tree.
//
// What is tried behind it stands on what may be at fault, and is tried anew afterwards.
func (s batches) search(group []*Request, found *forge.Rebase) {
	for _, q := range group {
		q.Car = &Car{Claims: q.Car.Claims, Ahead: q.Car.Ahead, Within: len(group)}
	}
	last := group[len(group)-1]
	last.Car.Doubted, last.Car.Failed = true, verdict.TrialOf(found)
	s.mark(last)
	for _, q := range s.Trials() {
		if slices.Contains(q.Car.Ahead, last.ref()) {
			s.uncouple(q)
		}
	}
}

// searchNext returns how many changes, from the first one of a list on, are
// tried next where they failed together with one behind them: half of those up
// to that one. It is 0 where they did not, or where the first one is left alone.
func searchNext(list []*Request) int {
	for i, q := range list {
		switch {
		case q.Car == nil || q.Car.State != "":
			return 0
		case q.Car.Searched:
			return (i + 1) / 2
		}
	}
	return 0
}
