package mergequeue_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/rules"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/mergequeue"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/outbox"
	"github.com/pfl-forge/pfl-forge/verdict"
)

// TestBadTrain counts how often verify runs for 100 changes of which three never pass, by
// recipes that make the same change again, in batches of eight and with a check that fails
// every twentieth time whatever it is run on. Whichever runs these are, and wherever the
// bad ones are, every good one lands and no other than the bad ones is blamed.
func TestBadTrain(t *testing.T) {
	for _, gap := range []int{0, 1} { // all at once, and one in each tenth of a run
		kinds, total, worlds, most := map[string]int{}, 0, 0, 0
		for phase := range 20 {
			for shift := 0; shift < 8; shift += testsize.Of(3, 1) {
				y := &yard{bad: map[forge.TaskID]bool{}, phase: phase, runs: map[string]int{}}
				for i := range 3 {
					y.bad[taskOf(17+30*i+shift*(i+1))] = true
				}
				y.play(t, 100, gap)
				for kind, n := range y.runs {
					kinds[kind] += n
				}
				total, worlds, most = total+y.total, worlds+1, max(most, y.total)
			}
		}
		mean := float64(total) / float64(worlds)
		t.Logf("a change each %d tenths of a run: verify ran %.1f times, %d at most", gap, mean, most)
		for _, kind := range slices.Sorted(maps.Keys(kinds)) {
			t.Logf("  %-24s %.2f", kind, float64(kinds[kind])/float64(worlds))
		}
		if mean > meanRuns || most > mostRuns {
			t.Errorf("verify ran %.1f times on the average and %d times at most for 100 changes", mean, most)
		}
	}
}

// The bounds of TestBadTrain, for 100 changes.
const meanRuns, mostRuns = 41, 50

// yard plays the workers of a queue, on a base branch whose tree is the list of what has landed.
type yard struct {
	state mergequeue.State
	bad   map[forge.TaskID]bool
	// phase is which one of twenty runs fails.
	phase, total int
	runs         map[string]int
	// now is in tenths of the time that a run takes.
	now    int
	merged []string
	jobs   []*work
	blamed map[forge.TaskID]int
}

// work is a command that a worker has, until a time.
type work struct {
	cmd   forge.Command
	trial bool
	base  []string
	end   int
}

func taskOf(i int) forge.TaskID { return forge.TaskID(fmt.Sprintf("c%02d-001", i)) }

// verify runs the commands on a tree.
func (y *yard) verify(kind string, tree []string) bool {
	y.total++
	passed := y.total%20 != y.phase && !slices.ContainsFunc(tree, func(s string) bool { return y.bad[forge.TaskID(s)] })
	if y.total%20 == y.phase {
		kind += ", flaky"
	} else if !passed {
		kind += ", failed"
	}
	y.runs[kind]++
	return passed
}

// play has n changes come, one after each gap, until nothing is left to do.
func (y *yard) play(t *testing.T, n, gap int) {
	t.Helper()
	y.blamed = map[forge.TaskID]int{}
	for came := 0; came < n || len(y.jobs) > 0; {
		slices.SortStableFunc(y.jobs, func(a, b *work) int { return a.end - b.end })
		var out outbox.Messages
		if came < n && (len(y.jobs) == 0 || came*gap <= y.jobs[0].end) {
			y.now = max(y.now, came*gap)
			task := taskOf(came)
			name, _, _ := strings.Cut(string(task), "-")
			change := &forge.QueueMerge{Task: task, Number: 1, Files: []string{name}, PatchID: "patch", Parallel: 8, Batch: 8, Unverified: true}
			if _, err := y.state.Merge(&out, forge.IntentID(name), change); err != nil {
				t.Fatal(err)
			}
			came++
		} else {
			j := y.jobs[0]
			y.now, y.jobs = j.end, y.jobs[1:]
			if _, _, err := y.state.Result(&out, rules.Newest, y.work(j), time.Unix(0, 0)); err != nil {
				t.Fatal(err)
			}
		}
		y.hear(t, out)
		y.issue()
	}
	if good := n - len(y.bad); len(y.merged) != good || len(y.blamed) != len(y.bad) {
		t.Fatalf("phase %d: %d of %d good changes merged, blamed are %v", y.phase, len(y.merged), good, y.blamed)
	}
}

// issue hands out what the queue asks for.
func (y *yard) issue() {
	var out outbox.Messages
	next := y.state.StartNext(&out, false)
	tried, cancel := y.state.Couple(rules.Newest, false)
	if next == nil {
		next = y.state.StartNext(&out, false)
	}
	for _, a := range cancel {
		y.jobs = slices.DeleteFunc(y.jobs, func(j *work) bool { return j.cmd.Attempt == a })
	}
	commands := mergequeue.Commands{State: &y.state, By: rules.Newest}
	if next != nil {
		j := &work{cmd: commands.Merge(next), end: y.now + 1}
		if f := j.cmd.Merge().Tried; f == nil || !f.Verify.Passed {
			j.end += 10
		}
		y.jobs = append(y.jobs, j)
	}
	for _, q := range tried {
		y.jobs = append(y.jobs, &work{cmd: commands.Trial(q), trial: true, base: slices.Clone(y.merged), end: y.now + 10})
	}
}

// hear has the recipe of a change that was to blame make the same one again: it
// fails once more, and the base branch passes.
func (y *yard) hear(t *testing.T, out outbox.Messages) {
	t.Helper()
	for _, m := range out {
		ended := forge.As[*forge.MergeEnded](m.Message)
		if ended == nil || ended.Result == nil || ended.Result.Outcome != forge.MergeVerifyFailed {
			continue
		}
		y.blamed[ended.Task]++
		if !y.bad[ended.Task] {
			t.Errorf("phase %d: %s is blamed", y.phase, ended.Task)
		}
		y.verify("second attempt", []string{string(ended.Task)})
		if passed := y.verify("second attempt, tip", nil); !passed {
			y.verify("second attempt, tip", nil)
		}
	}
}

// tree names a tree.
func tree(list []string) string { return "t " + strings.Join(list, " ") }

// work does a command.
func (y *yard) work(j *work) *forge.Result {
	in := j.cmd.Merge()
	r := &forge.Result{To: j.cmd.To, Attempt: j.cmd.Attempt}
	task := string(in.Change.Task)
	if !j.trial {
		r.Output = y.merge(&in, task)
		return r
	}
	out := &forge.MergeResult{Outcome: forge.MergeTried}
	on := j.base
	put := func(task string) forge.Rebase {
		f := forge.Rebase{BaseTree: tree(on), PatchID: "patch"}
		on = append(slices.Clone(on), task)
		f.Tree = tree(on)
		return f
	}
	for i := range in.Ahead {
		if name := string(in.Ahead[i].Task); !slices.Contains(on, name) {
			if f := put(name); i >= len(in.Ahead)-in.Batch {
				out.Batch = append(out.Batch, f)
			}
		}
	}
	f := put(task)
	f.Verify = &forge.VerifyReport{Command: "make test", Passed: y.verify(fmt.Sprintf("trial of %d", in.Batch+1), on)}
	out.Candidate, r.Output = &f, out
	return r
}

// merge puts a change on the base branch, or finds out whose fault it is that it fails there.
func (y *yard) merge(in *forge.MergeInput, task string) *forge.MergeResult {
	base, head := tree(y.merged), append(slices.Clone(y.merged), task)
	report := &forge.VerifyReport{Passed: true, Command: "make test"}
	done := &forge.MergeResult{Outcome: forge.MergeDone, Tree: tree(head)}
	found := in.Tried
	if found != nil && (found.BaseTree != base || found.Tree != tree(head)) {
		y.runs["findings of another tree"]++
		found = nil
	}
	if found != nil && found.Verify.Passed {
		y.merged = head
		return done
	}
	run := func(of string, tree []string) bool {
		passed := y.verify("merge, "+of, tree)
		trial := forge.CheckRun{Name: of, Tree: done.Tree, Passed: passed}
		if !passed {
			trial.Command = "make test"
		}
		report.Trials = append(report.Trials, trial)
		return passed
	}
	settles := func() bool { // after one failure
		for range verdict.Enough {
			if !run(verdict.TrialChange, head) {
				return false
			}
		}
		return true
	}
	if found != nil {
		report.Trials = slices.Clone(found.Verify.Trials)
	} else if run(verdict.TrialChange, head) || settles() {
		y.merged = head
		return done
	}
	if report.Passed = false; verdict.PassedBetween(report.Trials) != "" || run(verdict.TrialBase, y.merged) {
		run(verdict.TrialAlone, []string{task})
	} else {
		run(verdict.TrialBase, y.merged)
		report.Passed = run(verdict.TrialChange, head)
	}
	if report.Passed = verdict.Blame(report, done.Tree) == verdict.FaultOfCheck; report.Passed {
		y.merged = head
		return done
	}
	return &forge.MergeResult{Outcome: forge.MergeVerifyFailed, Verify: report}
}
