package runner_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/rules"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/projects"
)

// BenchmarkEnded has a project, in which many intents have ended, lead another one from
// its admission to its end. It reports what an event costs as a ratio to that of a
// project in which none has, in the same run, and what an ended intent costs a snapshot.
func BenchmarkEnded(b *testing.B) {
	for _, ended := range []int{1_000, 10_000, 50_000} {
		b.Run(fmt.Sprintf("ended=%d", ended), func(b *testing.B) {
			old := openProject(b)
			for i := range ended {
				runThrough(b, old, fmt.Sprintf("old-%d", i))
			}
			snapshot, err := old.Snapshot()
			if err != nil {
				b.Fatal(err)
			}
			var wrote, read time.Duration
			var ratios []float64
			rounds := 0
			for b.Loop() {
				young := openProject(b)
				for i := range 100 {
					began := time.Now()
					runThrough(b, young, fmt.Sprintf("new-%d-%d", rounds, i))
					between := time.Now()
					runThrough(b, old, fmt.Sprintf("new-%d-%d", rounds, i))
					ratios = append(ratios, float64(time.Since(between))/float64(between.Sub(began)))
				}
				ended := time.Now()
				if _, err := old.Snapshot(); err != nil {
					b.Fatal(err)
				}
				written := time.Now()
				if _, err := projects.Restore(forge.Key{Project: project}, snapshot); err != nil {
					b.Fatal(err)
				}
				wrote, read = wrote+written.Sub(ended), read+time.Since(written)
				rounds++
			}
			slices.Sort(ratios) // on a busy machine a single one says nothing
			b.ReportMetric(ratios[len(ratios)/2], "step-ratio")
			b.ReportMetric(float64(len(snapshot))/float64(ended), "snapshot-bytes/ended")
			b.ReportMetric(float64(wrote.Microseconds())/float64(rounds)/1000, "write-ms")
			b.ReportMetric(float64(read.Microseconds())/float64(rounds)/1000, "read-ms")
		})
	}
}

// openProject returns a project of which an intent has a call under way, so
// that the money of others is looked at before the first call of the next one.
func openProject(b *testing.B) *projects.Project {
	b.Helper()
	p := projects.New(forge.Key{Project: project})
	for n, m := range []forge.Message{&forge.AdmitRun{Run: 1, Title: "open"}, &forge.ReserveBudget{
		Run: 1, Number: 1, Attempt: forge.Attempt{Step: forge.StepAnalyze, Number: 1, Claim: 1}, Budget: forge.Budget{ProjectUSD: 1e9}, USD: 1,
	}} {
		ev := forge.Event{ID: fmt.Sprintf("open/%d", n), To: forge.Key{Project: project}, Actor: "open", Message: m}
		if _, ruling := p.Step(rules.Newest, ev); ruling.Decision != forge.Applied {
			b.Fatalf("%T: %+v", m, ruling)
		}
	}
	return p
}

// runThrough tells a project with budgets what it is told of an intent with one
// task, and returns that.
func runThrough(b *testing.B, p *projects.Project, id string) (told []forge.Event) {
	b.Helper()
	intent := forge.Key{Project: p.Summary().Key.Project, Intent: forge.IntentID(id)}
	limits := forge.Budget{ProjectUSD: 1e9, DayUSD: 1e9, IntentUSD: 10}
	task := forge.TaskID(id + "-001")
	call := func(task forge.TaskID, step forge.Step, number int) *forge.ReserveBudget {
		return &forge.ReserveBudget{
			Run: 1, Number: number, Attempt: forge.Attempt{Task: task, Step: step, Number: 1, Claim: 1}, Budget: limits, USD: 1,
		}
	}
	number := 0
	for _, m := range []forge.Message{
		&forge.AdmitRun{Run: 1, Title: "title of " + id, Type: "feature"},
		call("", forge.StepAnalyze, 1), &forge.CommitBudget{Number: 2, SpentUSD: 0.1},
		&forge.RunPlanned{Run: 1, Budget: limits, Number: 3},
		call(task, forge.StepImplement, 4), &forge.CommitBudget{Number: 5, SpentUSD: 0.2},
		call(task, forge.StepReview, 6), &forge.CommitBudget{Number: 7, SpentUSD: 0.3},
		&forge.QueueMerge{Run: 1, Task: task, Number: 1, Head: "h", Files: []string{id}},
		nil,
		&forge.RunEnded{Run: 1, Number: 1, Status: forge.StatusDone, SpentUSD: 0.3},
	} {
		number++
		ev := forge.Event{ID: fmt.Sprintf("%s/%d", id, number), To: p.Summary().Key, Actor: id, Message: m, At: time.Unix(int64(number), 0).UTC()}
		if m == nil {
			ev.Message = &forge.Result{
				To: intent, Attempt: p.Summary().Open[0], Output: &forge.MergeResult{Outcome: forge.MergeDone, Commit: "c", Files: []string{id}},
			}
		}
		if _, ruling := p.Step(rules.Newest, ev); ruling.Decision != forge.Applied {
			b.Fatalf("%T: %+v", ev.Message, ruling)
		}
		told = append(told, ev)
	}
	return told
}
