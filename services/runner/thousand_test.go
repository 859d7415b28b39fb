package runner_test

import (
	"errors"
	"fmt"
	"hash/fnv"
	"regexp"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/journal"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/services/runner"
)

// TestThousandIntents (a hundred, in its quick size): in one project, with dependencies between
// them and taken apart at random, over a real server. All end, so nobody was forgotten who waits.
func TestThousandIntents(t *testing.T) {
	t.Parallel()
	roots := testsize.Of(20, 400)
	known := playTree(t, bustest.StartServer(t), roots)
	if len(known) < roots*5/2 {
		t.Errorf("%d intents; want two and a half for each of %d at least", len(known), roots)
	}
	for id, s := range known {
		for _, c := range s.Children {
			if known[c.ID] == nil || c.Status != forge.StatusDone {
				t.Errorf("%s is done and knows its part %s as %q", id, c.ID, c.Status)
			}
		}
	}
}

// BenchmarkTree is the same for few and for many: the time for one intent must not
// grow with their number.
func BenchmarkTree(b *testing.B) {
	for _, roots := range []int{100, 400, 1600} {
		b.Run(fmt.Sprintf("roots=%d", roots), func(b *testing.B) {
			intents := 0
			for b.Loop() {
				intents += len(playTree(b, bustest.StartServer(b), roots))
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(intents), "us/intent")
			b.ReportMetric(float64(intents)/float64(b.N), "intents")
		})
	}
}

// playTree runs intents that depend on each other and are taken apart at random, and
// returns them all.
func playTree(t testing.TB, server *bustest.Server, roots int) map[forge.IntentID]*forge.Summary {
	t.Helper()
	b := server.Connect(t)
	startWith(t, b, 32, func(c forge.Command) forge.Result {
		r := succeed(c)
		who := childMark.ReplaceAllString(string(c.To.Intent), "")
		if out := forge.As[*forge.Analysis](r.Output); out != nil && c.Intent.Depth < 2 && pick(who, 3) == 0 {
			out.Tasks = nil
			for i := range 2 + pick(who+"/n", 3) {
				p := forge.ChildPlan{Name: fmt.Sprint(i), Title: fmt.Sprintf("part %d", i), Body: "do it", Risk: forge.RiskLow}
				if i > 0 && pick(who+fmt.Sprint(i), 2) == 0 {
					p.DependsOn = []string{fmt.Sprint(i - 1)}
				}
				out.Children = append(out.Children, p)
			}
		}
		return r
	})
	open := map[forge.IntentID]bool{}
	for i := range roots {
		id := forge.IntentID(fmt.Sprintf("intent-%d", i))
		open[id] = true
		ev := submission(id)
		in := &forge.As[*forge.Submit](ev.Message).Intent
		for k := range pick(fmt.Sprint(i), 3) {
			if d := pick(fmt.Sprintf("%d/%d", i, k), roots); d < i { // towards older ones: no cycle
				in.DependsOn = append(in.DependsOn, forge.IntentID(fmt.Sprintf("intent-%d", d)))
			}
		}
		if err := b.Submissions.Send(t.Context(), ev); err != nil {
			t.Fatal(err)
		}
	}
	return allDone(t, server, b, open)
}

// allDone returns the intents of the project, once those that are open and all that
// came of them are done. If they do not end, it shows where each stands, and what the server has.
func allDone(t testing.TB, server *bustest.Server, b *bus.Bus, open map[forge.IntentID]bool) map[forge.IntentID]*forge.Summary {
	t.Helper()
	ctx, moved := wait.WhileMoving(t)
	known := map[forge.IntentID]*forge.Summary{}
	err := b.Journal.Follow(ctx, project, 0, journal.Follower{Record: func(key forge.Key, _ uint64, rec forge.Record) error {
		moved()
		if key.IsProject() {
			return nil
		}
		known[key.Intent] = &rec.Summary
		if rec.Summary.Status == forge.StatusDone {
			delete(open, key.Intent)
		} else {
			open[key.Intent] = true
		}
		if len(open) == 0 {
			return errSeen
		}
		return nil
	}})
	if !errors.Is(err, errSeen) {
		for id := range open {
			view, err := runner.View(wait.Context(t), b, forge.Key{Project: project, Intent: id})
			t.Logf("%s: %+v, %v", id, view.Summary, err)
		}
		server.Report(t)
		t.Fatalf("%d of %d intents are not done: %v", len(open), len(known), err)
	}
	return known
}

// childMark matches the end of a child's id, which differs from run to run.
var childMark = regexp.MustCompile(`-[0-9a-f]{10}\b`)

// pick is a number below n that is the same whenever it is asked for.
func pick(what string, n int) int {
	h := fnv.New32a()
	h.Write([]byte(what))
	return int(h.Sum32() % uint32(n))
}
