package mergequeue_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/rules"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/mergequeue"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/outbox"
	"github.com/pfl-forge/pfl-forge/verdict"
)

// TestScripts plays testdata: requests and results in, answers and merges out. Before
// every step the queue is written out and read back.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		t.Helper()
		q := &queue{now: time.Unix(0, 0).UTC()}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			t.Helper()
			return q.play(t, d)
		})
	})
}

type queue struct {
	state  mergequeue.State
	now    time.Time
	paused bool
	batch  int
}

// play runs one command. Its first argument is a task, the second the number of the
// request; the intent is the part of the task before the hyphen.
func (q *queue) play(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	q.reload(t)
	var task forge.TaskID
	number := 1
	if len(d.CmdArgs) > 0 {
		task = forge.TaskID(d.CmdArgs[0].Key)
	}
	if len(d.CmdArgs) > 1 {
		if n, err := strconv.Atoi(d.CmdArgs[1].Key); err == nil {
			number = n
		}
	}
	list := func(name string) []string {
		for _, a := range d.CmdArgs {
			if a.Key == name {
				return a.Vals
			}
		}
		return nil
	}
	name, _, _ := strings.Cut(string(task), "-")
	id := forge.IntentID(name)
	var out outbox.Messages
	var b strings.Builder
	var decision forge.Decision
	var err error
	switch d.Cmd {
	case "lock":
		decision, err = q.state.Lock(&out, id, &forge.LockFiles{Task: task, Number: number, Conflicts: list("conflicts"), Files: list("files")})
	case "merge":
		change := &forge.QueueMerge{Task: task, Number: number, Files: list("files"), PatchID: "patch"}
		if n := list("parallel"); n != nil {
			change.Parallel, _ = strconv.Atoi(n[0])
		}
		if n := list("batch"); n != nil {
			q.batch, _ = strconv.Atoi(n[0])
		}
		if d.HasArg("checks") {
			change.Checks = []forge.Check{{}}
		}
		change.Batch = q.batch
		decision, err = q.state.Merge(&out, id, change)
	case "withdraw":
		decision, err = q.state.Withdraw(id, &forge.WithdrawRequests{Task: task, Number: number})
	case "forget":
		q.state.Forget(forge.IntentID(task), false)
	case "pause":
		q.paused = true
	case "resume":
		q.paused = false
	case "result":
		r := &forge.Result{To: forge.Key{Intent: id}, Attempt: forge.Attempt{Task: task, Step: forge.StepMerge, Number: number, Claim: 1}}
		if m := q.state.Current; m != nil && m.Task == task {
			r.Attempt = m.Attempt()
		}
		for _, queued := range q.state.Trials() {
			if queued.Task == task {
				r.Attempt = queued.Attempt()
			}
		}
		if claim := list("claim"); claim != nil {
			r.Attempt.Claim, _ = strconv.Atoi(claim[0])
		}
		if reason := list("fails"); reason != nil {
			r.Output = &forge.Failure{Reason: forge.FailureReason(reason[0])}
		} else if d.HasArg("outcome") {
			r.Output = resultOf(forge.MergeOutcome(list("outcome")[0]), list)
		}
		var retryAt time.Time
		retryAt, decision, err = q.state.Result(&out, rules.Newest, r, q.now)
		if !retryAt.IsZero() {
			fmt.Fprintf(&b, "again after %s\n", retryAt.Sub(q.now))
		}
	case "fire":
		q.now = q.state.Current.RetryAt
		m := q.state.Retry(&forge.TimerFired{Key: q.state.Current.TimerKey(), At: q.now})
		fmt.Fprintf(&b, "merge %s, claim %d\n", m.Task, m.Claim)
	case "repeat":
		q.state.Repeat(&out)
	case "places":
		said := q.state.Places()
		for _, task := range slices.Sorted(maps.Keys(said)) {
			fmt.Fprintf(&b, "%s: %s\n", task, said[task])
		}
		return b.String()
	default:
		t.Fatalf("%s: unknown command %q", d.Pos, d.Cmd)
	}
	if err != nil {
		fmt.Fprintf(&b, "%s: %v\n", decision, err)
	}
	next := q.state.StartNext(&out, q.paused)
	issue, cancel := q.state.Couple(rules.Newest, q.paused)
	if next == nil {
		next = q.state.StartNext(&out, q.paused)
	}
	for _, m := range out {
		fmt.Fprintf(&b, "to %s: %s\n", m.Intent, describe(m.Message))
	}
	if next != nil {
		fmt.Fprintf(&b, "merge %s", next.Task)
		in := (mergequeue.Commands{State: &q.state, By: rules.Newest}).Merge(next)
		switch found := in.Merge().Tried; {
		case found == nil:
		case !found.Verify.Passed:
			fmt.Fprintf(&b, ", which failed twice on %s", found.BaseTree)
			if verdict.PassedBetween(found.Verify.Trials) != "" {
				b.WriteString(" that passed in between")
			}
		case found.Together != "":
			fmt.Fprintf(&b, " as found on %s, together with %s", found.BaseTree, found.Together)
		default:
			fmt.Fprintf(&b, " as found on %s", found.BaseTree)
		}
		b.WriteString("\n")
	}
	for _, a := range cancel {
		fmt.Fprintf(&b, "cancel %s, claim %d\n", a.Task, a.Claim)
	}
	for _, r := range issue {
		fmt.Fprintf(&b, "try %s, claim %d, on", r.Task, r.Attempt().Claim)
		in := (mergequeue.Commands{State: &q.state}).Trial(r)
		for i, c := range in.Merge().Ahead {
			if i == len(in.Merge().Ahead)-in.Merge().Batch {
				b.WriteString(" with")
			}
			fmt.Fprintf(&b, " %s", c.Task)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// resultOf returns what a worker reports of a merge or a trial.
func resultOf(outcome forge.MergeOutcome, list func(string) []string) *forge.MergeResult {
	r := &forge.MergeResult{Outcome: outcome}
	tree := strings.Join(list("tree"), " ")
	switch {
	case outcome == forge.MergeDone:
		r.Tree = tree
	case outcome == forge.MergeTried && list("no") == nil:
		r.Candidate = &forge.Rebase{BaseTree: tree, Head: "head", Tree: "found", PatchID: "patch", Conflicts: list("conflicts")}
		if p := list("patch"); p != nil {
			r.Candidate.PatchID = p[0]
		}
		if found := list("found"); found != nil {
			r.Candidate.Tree = found[0]
		}
		r.Candidate.Verify = &forge.VerifyReport{Command: "make test", Passed: list("broken") == nil}
		// Each of a batch is a word: its tree, after that what is odd about it.
		for _, of := range list("batch") {
			f := forge.Rebase{BaseTree: tree, Tree: of, PatchID: "patch"}
			switch kind, name, _ := strings.Cut(of, ":"); kind {
			case "conflict":
				f.Tree, f.Conflicts = name, []string{"x.go"}
			case "other":
				f.Tree, f.PatchID = name, "other"
			case "guarded":
				f.Tree, f.Guarded = name, []string{"it is run by verify"}
			case "elsewhere":
				f.Tree, f.BaseTree = name, "elsewhere"
			}
			tree = f.Tree
			r.Batch = append(r.Batch, f)
		}
		r.Candidate.BaseTree = tree
	}
	return r
}

// reload replaces the queue by what it is after it was written out and read back.
func (q *queue) reload(t *testing.T) {
	t.Helper()
	data, err := json.Marshal(&q.state)
	if err != nil {
		t.Fatal(err)
	}
	q.state = mergequeue.State{}
	if err := json.Unmarshal(data, &q.state); err != nil {
		t.Fatal(err)
	}
}

func describe(m forge.Message) string {
	switch m := m.(type) {
	case *forge.FilesLocked:
		if m.Granted {
			return fmt.Sprintf("%s has the lock, request %d", m.Task, m.Number)
		}
		return fmt.Sprintf("%s is denied the lock, request %d", m.Task, m.Number)
	case *forge.MergeEnded:
		if m.Failure != nil {
			return fmt.Sprintf("%s failed: %s, request %d", m.Task, m.Failure.Reason, m.Number)
		}
		return fmt.Sprintf("%s: %s, request %d", m.Task, m.Result.Outcome, m.Number)
	default:
		return fmt.Sprintf("%T", m)
	}
}
