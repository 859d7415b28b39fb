package local

import (
	"slices"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge"
)

// notices keeps what a person is told.
type notices struct{ lines []string }

func (*notices) Decided(_, _ *forge.Summary, _ *forge.Record) {}
func (*notices) Progress(forge.Progress)                      {}
func (*notices) State([]forge.Summary)                        {}
func (n *notices) Notice(line string)                         { n.lines = append(n.lines, line) }

// A run that shows nothing says what it waits for: once, and not while an agent works.
func TestWaits(t *testing.T) {
	var got notices
	w := newWaitNotices(&got)
	one := forge.Key{Project: "shop", Intent: "one"}
	implement := forge.Attempt{Task: "one-001", Step: forge.StepImplement, Number: 1, Claim: 1}
	reflect := forge.Attempt{Step: forge.StepReflect, Number: 1, Claim: 1}
	working := []forge.Summary{
		{Key: one, Status: forge.StatusExecuting, RunSummary: forge.RunSummary{Open: []forge.Attempt{implement}}},
		{Key: forge.Key{Project: "shop", Intent: "two"}, RunSummary: forge.RunSummary{Activity: "waits for one"}},
	}
	reflecting := []forge.Summary{
		{Key: one, Status: forge.StatusDone, RunSummary: forge.RunSummary{Idle: true}},
		{Key: one.ProjectKey(), RunSummary: forge.RunSummary{Activity: "reflecting on one", Open: []forge.Attempt{reflect}}},
	}
	later := time.Now().Add(time.Hour)

	w.noticeIfQuiet(time.Now(), working) // it is too soon
	w.noticeIfQuiet(later, working)
	w.noticeIfQuiet(later, working)
	w.Progress(forge.Progress{To: one, Attempt: implement, Kind: forge.ProgressStarted})
	w.noticeIfQuiet(later, working)
	w.Progress(forge.Progress{To: one, Attempt: implement, Kind: forge.ProgressEnded})
	w.noticeIfQuiet(later, reflecting)
	w.Progress(forge.Progress{To: one, Attempt: reflect, Kind: forge.ProgressText})
	w.noticeIfQuiet(later, reflecting)
	w.noticeIfQuiet(later, working[1:])
	w.noticeIfQuiet(later, reflecting[:1])
	merge := forge.Attempt{Task: "one-001", Step: forge.StepMerge, Number: 1}
	w.noticeIfQuiet(later, []forge.Summary{{Key: one.ProjectKey(), RunSummary: forge.RunSummary{Open: []forge.Attempt{merge}}}})

	want := []string{
		"still waiting: waits for the implementer: implement of one-001",
		"still waiting: waits for the reflector: the project is reflecting on one",
		"still waiting: the project is reflecting on one",
		"still waiting: two waits for one",
		"still waiting: waits for the implementer: merge of one-001",
	}
	if !slices.Equal(got.lines, want) {
		t.Errorf("told %q, want %q", got.lines, want)
	}
}
