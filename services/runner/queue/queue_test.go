package queue

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/mergequeue"
)

var noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

// ended returns a record with the result of an attempt to merge.
func ended(task forge.TaskID, outcome forge.MergeOutcome, took time.Duration) *forge.Record {
	return &forge.Record{Events: []forge.Event{{At: noon, Message: &forge.Result{
		Attempt: forge.Attempt{Task: task, Step: forge.StepMerge, Number: 1, Claim: 1}, Duration: took, Output: &forge.MergeResult{Outcome: outcome},
	}}}}
}

// TestTell: estimates are made of the last trials and merges alone; there are
// none before the first merge, none while anything of which the end is not
// known holds the project up, and none of a change that is only proposed.
func TestTell(t *testing.T) {
	var r Reader
	merging := forge.Attempt{Task: "a-001", Step: forge.StepMerge, Number: 1, Claim: 1}
	line := mergequeue.Line{Parallel: 2, Batch: 1, Places: []mergequeue.Place{
		{Intent: "a", Task: "a-001", Position: 1, Words: "is being merged", Merging: true, Attempt: merging},
		{Intent: "b", Task: "b-001", Position: 2, Words: "second", Trial: mergequeue.Trying, On: []forge.TaskID{"a-001"}},
		{Intent: "c", Task: "c-001", Words: "pull request 7", Proposes: true},
	}}
	sum := forge.Summary{Project: &forge.ProjectSummary{}}
	r.Add(ended("z-001", forge.MergeTried, time.Minute))
	if q := r.Read(&sum, line, noon); q.Basis != nil || q.Changes[0].Seconds != nil || len(q.Changes) != 3 || q.Facts == nil {
		t.Errorf("before a merge: %+v", q)
	}
	for range samples { // the one of an hour is forgotten
		r.Add(ended("z-001", forge.MergeDone, time.Hour))
	}
	for range samples {
		r.Add(ended("z-001", forge.MergeDone, 10*time.Second))
		r.Add(ended("z-001", forge.MergeConflict, time.Hour))
		r.Add(ended("z-001", forge.MergeDone, 0))
	}
	begins := &forge.Record{Events: []forge.Event{{At: noon.Add(-4 * time.Second)}}, Effects: forge.Effects{Commands: []forge.Command{{Attempt: merging}}}}
	r.Add(begins)
	begins.Events[0].At = noon
	r.Add(begins) // a repetition after a crash does not begin it anew
	q := r.Read(&sum, line, noon)
	if q.Basis == nil || *q.Basis != (document.QueueBasis{Trials: 1, TrialSeconds: 60, Merges: samples, MergeSeconds: 10}) {
		t.Fatalf("the basis is %+v", q.Basis)
	}
	if *q.Changes[0].Seconds != 6 || *q.Changes[1].Seconds != 70 || q.Changes[2].Seconds != nil {
		t.Errorf("%d, %d", *q.Changes[0].Seconds, *q.Changes[1].Seconds)
	}
	for i, want := range []document.QueueState{document.QueueMerging, document.QueueTrying, document.QueuePull} {
		if q.Changes[i].State != want {
			t.Errorf("change %d is %s", i, q.Changes[i].State)
		}
	}
	mixed, pulls := line, line
	mixed.Places = slices.Clone(line.Places)
	mixed.Places[1].Proposes = true
	if q := r.Read(&sum, mixed, noon); q.Basis == nil || *q.Changes[0].Seconds != 6 || q.Changes[1].Seconds != nil {
		t.Errorf("with one that is proposed as a pull request: %+v", q)
	}
	pulls.Places = mixed.Places[1:]
	if q := r.Read(&sum, pulls, noon); q.Basis != nil || q.Changes[0].Seconds != nil || q.Changes[0].Position != 2 {
		t.Errorf("with pull requests alone: %+v", q)
	}
	held := line
	held.Held = true
	closed := func(reason forge.FailureReason, until time.Time) *forge.Summary {
		c := forge.Obstacle{Agent: "x", Reason: reason, Message: "words", Since: noon, Until: until}
		return &forge.Summary{Project: &forge.ProjectSummary{Closed: []forge.Obstacle{c}}}
	}
	for name, q := range map[string]document.Queue{
		"held":   r.Read(&sum, held, noon),
		"paused": r.Read(&forge.Summary{Waiting: forge.WaitingPaused, Project: sum.Project}, line, noon),
		"away":   r.Read(closed(forge.FailOrigin, time.Time{}), line, noon),
		"red":    r.Read(closed(forge.FailBase, time.Time{}), line, noon),
		"pushes": r.Read(closed(forge.FailPush, time.Time{}), line, noon),
	} {
		if q.Basis != nil || q.Changes[0].Seconds != nil || q.Paused != (name == "paused") {
			t.Errorf("%s: %+v", name, q)
		}
	}
	if q := r.Read(closed(forge.FailQuota, noon.Add(time.Hour)), line, noon); q.Basis == nil || len(q.Facts) != 1 || q.Facts[0].Until == nil {
		t.Errorf("an account at its limit stops no merge: %+v", q)
	}
	if q := r.Read(closed(forge.FailQuota, noon.Add(-time.Hour)), line, noon); len(q.Facts) != 0 {
		t.Errorf("a quota that is over: %+v", q.Facts)
	}
	r.Add(ended("a-001", forge.MergeDone, 10*time.Second))
	r.Add(&forge.Record{Effects: forge.Effects{Cancels: []forge.Attempt{{Task: "b-001"}}}})
	if len(r.began) != 0 {
		t.Errorf("attempts that ended are kept: %v", r.began)
	}
}

// TestTellBound: an answer has so many changes at most, says how many are left out, and cuts words.
func TestTellBound(t *testing.T) {
	var l mergequeue.Line
	for i := range 1000 {
		l.Places = append(l.Places, mergequeue.Place{Position: i + 1, Words: string(make([]byte, 9000)), On: make([]forge.TaskID, 500)})
	}
	q := new(Reader).Read(&forge.Summary{}, l, noon)
	q.Bound()
	if c := &q.Changes[0]; len(q.Changes) != document.QueueShown || q.LeftOut != 1000-document.QueueShown || len(c.Words) > 600 || len(c.On) > 50 {
		t.Errorf("%d changes, %d left out, %d, %d", len(q.Changes), q.LeftOut, len(c.Words), len(c.On))
	}
}

// TestPullsOfAnIntent: of one intent its changes are told, and its pull
// requests with an address only where that is one of the web.
func TestPullsOfAnIntent(t *testing.T) {
	state := &mergequeue.State{Tasks: map[forge.IntentID]map[forge.TaskID]*mergequeue.Task{"a": {"a-000": {}}, "b": {}}}
	want := map[string]string{
		"https://git.example.com/web/pulls/7": "https://git.example.com/web/pulls/7", "http://127.0.0.1:3000/x": "http://127.0.0.1:3000/x",
		"javascript:alert(1)": "", "data:text/html,x": "", "//evil.example/x": "", "https://user:secret@evil.example/": "", "": "", "http://": "",
		"https://x/" + strings.Repeat("x", maxAddress): "", "https://x/\n": "",
	}
	addresses := slices.Sorted(maps.Keys(want))
	for i, address := range addresses {
		seen := &forge.PullRequest{Number: i + 1, URL: address, State: forge.PullOpen}
		state.Tasks["a"][forge.TaskID(fmt.Sprintf("a-%03d", i+1))] = &mergequeue.Task{Pull: &mergequeue.Pull{Seen: seen}}
	}
	state.Tasks["b"]["b-001"] = &mergequeue.Task{Pull: &mergequeue.Pull{Seen: &forge.PullRequest{Number: 99, URL: "https://other.example/"}}}
	q := document.Queue{Changes: []document.QueuedChange{{Intent: "b", Task: "b-001"}, {Intent: "a", Task: "a-001"}}}
	Of(&q, mergequeue.LineOf(state), "a")
	if len(q.Changes) != 1 || q.Changes[0].Task != "a-001" || len(q.Pulls) != len(want) {
		t.Fatalf("%+v", q)
	}
	for i, p := range q.Pulls {
		if p.Number != i+1 || p.State != forge.PullOpen || p.URL != want[addresses[i]] {
			t.Errorf("%q is told as %+v", addresses[i], p)
		}
	}
}
