package history

import (
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
)

// A run is told in the order of time, an attempt before what followed from it, and
// nothing in it moves a cursor.
func TestTimeline(t *testing.T) {
	began := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	at := func(s int) time.Time { return began.Add(time.Duration(s) * time.Second) }
	h := &forge.History{
		IntentID: "fix", Run: 2, CreatedAt: at(100), Outcome: forge.OutcomeFailed,
		StepResults: []forge.StepRecord{
			{Step: forge.StepAnalyze, Attempt: 1, Outcome: "ok", Duration: 10 * time.Second, At: at(10)},
			{
				Step: forge.StepReview, TaskID: "fix-001", Attempt: 2, Outcome: "rejected", Duration: 75 * time.Second, At: at(90), Agent: "claude",
				Model: "opus\x1b[2J", Session: "0123", Usage: forge.Usage{InputTokens: 41_000, OutputTokens: 200, CostUSD: 0.19},
				Executor: forge.ExecutorPods,
			},
			{Step: forge.StepRebase, TaskID: "fix-001", Attempt: 1, Outcome: "ok", Duration: time.Second, At: at(91), Executor: forge.ExecutorNamespaces},
			{Step: forge.StepMerge, TaskID: "fix-001", Attempt: 1, Outcome: "merged", At: at(92), Executor: forge.ExecutorNone},
			{Step: forge.StepSummarize, TaskID: "fix-001", Attempt: 1, Outcome: "ok", At: at(93), Executor: "\x1b[2J"},
		},
		Adjustments: []forge.Adjustment{
			{Rule: "rework", TaskID: "fix-001", Detail: "no\ntest", At: at(90)},
			{Rule: "of-tomorrow", At: at(95)},
		},
	}
	d := pastDetailOf(h)
	if d.Seconds != 100 || d.Tokens != 41_200 || d.CostUSD != 0.19 || len(d.Agents) != 1 {
		t.Errorf("%+v", d.pastRun)
	}
	var got []string
	for i := range d.Timeline {
		got = append(got, timelineText(&d.Timeline[i], d.StartedAt, render.Style{}))
	}
	want := []string{
		"      +10s                            analyze      ok                 10s",
		"    +1m30s  fix-001                   review 2     rejected         1m15s  claude, opus, 41.2k tokens, $0.19, session 0123, in pods",
		"    +1m30s  fix-001                   -> rework: the review rejected the change; the same session continues with its feedback (no test)",
		"    +1m31s  fix-001                   rebase       ok                1.0s  in namespaces",
		"    +1m32s  fix-001                   merge        merged            0.0s  unconfined",
		"    +1m33s  fix-001                   summarize    ok                0.0s",
		"    +1m35s                            -> of-tomorrow",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	h.StepResults[0].At, h.Adjustments[0].At = at(99), at(1)
	if d := pastDetailOf(h); d.Timeline[0].Rule != "rework" || d.Timeline[len(d.Timeline)-1].Step != forge.StepAnalyze {
		t.Errorf("not in the order of time: %+v", d.Timeline)
	}
}

func TestChooseRun(t *testing.T) {
	v := &forge.View{Intent: forge.Intent{ID: "fix"}, History: []forge.History{{Run: 1}, {Run: 3}}}
	for asked, want := range map[int]int{0: 3, 1: 1, 3: 3} {
		if h, err := chooseRun(v, asked); err != nil || h.Run != want {
			t.Errorf("%d: %v, %v", asked, h, err)
		}
	}
	if _, err := chooseRun(v, 2); err == nil {
		t.Error("there is no run 2")
	}
	if _, err := chooseRun(&forge.View{}, 0); err == nil {
		t.Error("no run has ended")
	}
}
