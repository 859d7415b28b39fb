package implementer

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent/agenttest"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/live"
	"github.com/pfl-forge/pfl-forge/bus/objects"
	"github.com/pfl-forge/pfl-forge/git/gittest"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/jobs/repotest"
)

// replicas are two implementers, each with its own state and clone, that share an
// origin and a server.
func replicas(t *testing.T, scenario agenttest.Scenario) (one, two *world, model *agenttest.Server) {
	t.Helper()
	cli, model := repotest.Claude(t, scenario)
	r := gittest.New(t, map[string]string{"pfl-forge.yaml": settings, "a.txt": "a\n"})
	origin := gittest.At(t, r.Origin())
	b := bustest.Start(t)
	one = worldOn(t, origin, repotest.Replica(t, origin.Dir, b.Objects, cli), b)
	two = worldOn(t, origin, repotest.Replica(t, origin.Dir, b.Objects, cli), b)
	return one, two, model
}

// Another replica, with another clone, goes on with an attempt that was cut off: in
// the same session, with the commits and files that there were.
func TestAnotherReplicaGoesOn(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	one, two, model := replicas(t, interrupted(stop))
	c := asked(1)
	told := one.imp.implement(ctx, c, silent)
	fails(t, told, forge.FailKilled, "")
	c.Attempt.Claim = 2
	more := two.finishes(c)
	goesOn(t, model)
	if told.Usage.InputTokens == 0 || more.Usage.Calls != 1 || told.Usage.Calls != 1 {
		t.Errorf("they cost %+v and %+v; want the calls of each", told.Usage, more.Usage)
	}
}

// reworks writes one file, and another one when that is asked for. It goes by what was
// said: the CLI may end before it has written down that its answer was taken.
func reworks(r agenttest.Request) agenttest.Reply {
	said := func(text string) bool { return bytes.Contains(r.Body, []byte(text)) }
	switch {
	case !said("new.txt"):
		return writes("new.txt")(r)
	case !said("'one'"):
		return commits("one")(r)
	case !said("more, please"):
		return agenttest.Answer(object{"summary": "wrote it"})(r)
	case !said("more.txt"):
		return writes("more.txt")(r)
	case !said("'two'"):
		return commits("two")(r)
	}
	return agenttest.Answer(object{"summary": "and more"})(r)
}

// A rejection reaches the agent in its session, whichever replica it is resumed on.
func TestAnotherReplicaReworks(t *testing.T) {
	t.Parallel()
	one, two, model := replicas(t, reworks)
	first := one.implemented(asked(1))
	c := rework(first, "more, please")
	second := two.implemented(c)
	if second.Commits != 2 || second.Base != first.Base || two.repo.Show(second.Head, "more.txt") != "more.txt" {
		t.Errorf("got %+v", second)
	}
	goesOn(t, model)
	requests := model.Requests("model")
	if body := string(requests[len(requests)-1].Body); !strings.Contains(body, "more, please") {
		t.Error("it was not told what was wrong")
	}

	// The first one comes back to it, with an older state of its own.
	third := rework(second, "and more")
	third.Attempt.Number = 3
	if im := one.implemented(third); im.Base != first.Base || im.Head != second.Head {
		t.Errorf("got %+v", im)
	}
	requests = model.Requests("model")
	if body := string(requests[len(requests)-1].Body); !strings.Contains(body, "and more") || !strings.Contains(body, "more, please") {
		t.Error("it went on in an old state of the session")
	}
}

// The agent had ended, and its replica dies before it tells: the next one tells it,
// and calls no agent.
func TestAnotherReplicaReports(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	one, two, model := replicas(t, agenttest.Steps(
		writes("new.txt"), commits("one"), writes("left.txt"), agenttest.Answer(object{"summary": "wrote it"}),
	))
	told := one.implement(asked(1))
	before := len(model.Requests("model"))
	again := two.implement(asked(1))
	if told.Failure() != nil || again.Failure() != nil {
		t.Fatalf("%+v, %+v", told.Failure(), again.Failure())
	}
	if told.Usage.InputTokens == 0 || again.Usage != told.Usage {
		t.Errorf("it costs %+v, and told elsewhere %+v", told.Usage, again.Usage)
	}
	want, got := forge.As[*forge.Implementation](told.Output), forge.As[*forge.Implementation](again.Output)
	if got.Head != want.Head || got.Base != want.Base || got.Summary != want.Summary || got.Commits != 1 {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if two.repo.Show(got.Leftover, "left.txt") != "left.txt" {
		t.Errorf("got %+v", got)
	}
	if n := len(model.Requests("model")); n != before {
		t.Errorf("the model was asked %d times more", n-before)
	}
}

// A session that nobody has any more begins again under its own name, with a recap.
func TestLostSession(t *testing.T) {
	t.Parallel()
	w, model := claudeWorld(t, agenttest.Steps(
		writes("new.txt"), commits("one"), agenttest.Answer(object{"summary": "wrote it"}),
	))
	first := w.implemented(asked(1))
	if err := os.RemoveAll(w.repository().StateDir("fix-001")); err != nil {
		t.Fatal(err)
	}
	r := w.implement(rework(first, "more, please"))
	if r.Failure() != nil || r.Session != conversation {
		t.Fatalf("%+v, %+v", r, r.Failure())
	}
	requests := model.Requests("model")
	last := requests[len(requests)-1]
	for _, want := range []string{"Carry out this task", "in a conversation that is lost", "more, please"} {
		if !strings.Contains(string(last.Body), want) {
			t.Errorf("it is not told %q", want)
		}
	}
	if last.ToolResults > 3 {
		t.Error("the session is not lost")
	}
}

// What is stored of a session goes with its task.
func TestSessionsEndWithTheirTask(t *testing.T) {
	t.Parallel()
	one, _, _ := replicas(t, agenttest.Steps(writes("new.txt"), commits("one"), agenttest.Answer(object{"summary": "wrote it"})))
	one.implemented(asked(1))
	stored := func() int {
		list, err := one.bus.Objects.List(t.Context(), objects.Name{Project: repotest.Project, Kind: objects.Session})
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	if stored() != 1 {
		t.Fatal("nothing is stored")
	}
	one.intent(forge.StatusExecuting, underWay)
	if err := one.imp.reconcile(t.Context(), one.repository()); err != nil || stored() != 1 {
		t.Errorf("the session of a task under way is gone; %v", err)
	}
	one.intent(forge.StatusBlocked, failed)
	if err := one.imp.reconcile(t.Context(), one.repository()); err != nil || stored() != 0 {
		t.Errorf("the session of a task that ended is stored; %v", err)
	}
	again := asked(2)
	one.implemented(again)
	one.imp.release(t.Context(), live.Control{
		To: forge.Key{Project: repotest.Project, Intent: "fix"}, Released: []forge.TaskID{"fix-001"},
	})
	if stored() != 0 {
		t.Error("the session of a task that ended is stored")
	}
}

// An attempt was stopped by a limit: the next one goes on in what it left, files that
// are not committed included, here and elsewhere.
func TestAttemptGoesOnInTheTreeOfAnother(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	for _, elsewhere := range []bool{false, true} {
		t.Run(fmt.Sprintf("elsewhere=%t", elsewhere), func(t *testing.T) {
			var works atomic.Bool // the CLI may repeat a request that failed
			steps := agenttest.Steps(
				writes("new.txt"), commits("half"), writes("more.txt"), commits("whole"), agenttest.Answer(object{"summary": "finished"}),
			)
			one, two, model := replicas(t, func(r agenttest.Request) agenttest.Reply {
				if r.ToolResults == 3 && !works.Load() {
					return agenttest.Fail(400, "invalid_request_error", "no more")(r)
				}
				return steps(r)
			})
			if r := one.implement(asked(1)); r.Failure() == nil {
				t.Fatalf("got %+v", r)
			}
			works.Store(true)
			next := asked(2)
			next.Resume, input(&next).Continue = true, true
			if elsewhere {
				one = two
			}
			one.finishes(next)
			goesOn(t, model)
		})
	}
}
