package e2e

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/bus/objects"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// TestKilledImplementers kills implementers -9 many times while they run Claude Code:
// before its first reply, during a tool, after a commit, after the answer. Most
// are started again at once; one, whose work is rejected, only when the other mends it,
// and one is stopped, and comes back when the other has taken over. Each agent goes on
// in its session, no two work on one task, and nothing is lost.
func TestKilledImplementers(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	// Who is killed together with another one may never come to its own moment again.
	const spare = 4
	const intents, kills = 8, 20
	o := newOutages(t, intents, kills+spare)
	for i := range intents {
		got := o.c.forge("create", fmt.Sprintf("write-%02d", i), "--title", fmt.Sprintf("Write files %02d", i), "--body", "Please.")
		if got.code != 0 {
			t.Fatalf("create: exit code %d\n%s%s", got.code, got.stdout, got.stderr)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	var background sync.WaitGroup
	background.Go(func() { o.watch(ctx) })
	background.Go(func() { o.kill(ctx) })
	defer background.Wait()
	defer stop()
	wait.Moving(t, "all intents are done", func() bool { return o.resumed() == intents }, o.progress)
	stop()
	background.Wait()
	o.check(intents, kills+1)
}

// resumed returns how many intents are done, and resumes those that wait for a person, since one
// attempt was hit three times (docs/adr/0163).
func (o *outages) resumed() (done int) {
	for _, i := range o.c.intents() {
		switch {
		case i.Status == "done":
			done++
		case i.Waiting == "paused":
			o.t.Logf("%s: resume %s: exit code %d", time.Now().Format(time.TimeOnly), i.ID, o.c.forge("resume", i.ID).code)
		}
	}
	return done
}

// progress grows with what was asked and who was killed.
func (o *outages) progress() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.asked) + len(o.killed)
}

// kill kills whoever is due. The one whose work is rejected stays down until the other
// goes on with it; and one is stopped so long instead.
func (o *outages) kill(ctx context.Context) {
	var away *absence
	defer func() { away.end(o) }()
	stopped := false
	rng := rand.New(rand.NewPCG(7, 8))
	for {
		if away != nil && o.moved(away.due) {
			away.end(o)
			away = nil
		}
		var d due
		select {
		case <-ctx.Done():
			return
		case d = <-o.dues:
		case <-wait.Moment(rng, 40*time.Millisecond, 60*time.Millisecond):
			continue
		}
		if d.moment == atReview && away != nil { // it has the lock
			away.end(o)
			away = nil
		}
		if d.moment != atReview && !o.current(d) || away != nil && away.replica == d.replica { // it was killed with another one
			o.again(d)
			continue
		}
		o.prepare(d)
		n := o.count(d)
		switch {
		case d.moment == atReview:
			away = o.leave(d, (*process).kill, o.c.start)
			close(d.done)
		case away == nil && n >= 8 && !stopped:
			stopped = true
			away = o.leave(d, (*process).stop, (*process).goOn)
		default:
			o.leave(d, (*process).kill, o.c.start).end(o)
		}
	}
}

func (o *outages) count(d due) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.killed = append(o.killed, d)
	o.t.Logf("%s: kill %d: %s %s", time.Now().Format(time.TimeOnly), len(o.killed), d.replica, d.moment)
	return len(o.killed)
}

// absence is the time in which an implementer does nothing.
type absence struct {
	due
	back func()
}

func (o *outages) leave(d due, away, back func(*process)) *absence {
	p := o.process(d.replica)
	away(p)
	return &absence{d, func() { back(p) }}
}

// end lets the implementer come back.
func (a *absence) end(o *outages) {
	if a == nil {
		return
	}
	o.mu.Lock()
	o.life[a.replica]++
	o.frozen[a.replica] = false
	o.mu.Unlock()
	if a.moment != atAnswer && a.moment != atReview {
		close(a.done)
	}
	a.back()
}

func (p *process) stop() { _ = p.cmd.Process.Signal(syscall.SIGSTOP) }
func (p *process) goOn() { _ = p.cmd.Process.Signal(syscall.SIGCONT) }

// prepare waits until the replica's agents are where they are to be killed, and what
// they have said so far can be found by others.
func (o *outages) prepare(d due) {
	o.mu.Lock()
	o.frozen[d.replica] = true
	waiting := map[string]string{}
	for _, q := range o.asked {
		if q.replica == d.replica && q.life == o.life[d.replica]+1 {
			waiting[q.number] = q.session
		}
	}
	o.mu.Unlock()
	o.until("what the agents said is stored", func() bool {
		list, err := o.store.List(o.t.Context(), objects.Name{Project: project, Kind: objects.Session})
		if err != nil {
			return false
		}
		for _, i := range list {
			if i.Task != "" {
				delete(waiting, strings.TrimPrefix(string(i.Intent), "write-"))
			}
		}
		maps.DeleteFunc(waiting, func(_, session string) bool { return len(agentsWith(session)) == 0 }) // it has ended
		return len(waiting) == 0
	})
	switch d.moment {
	case inTool:
		o.until("the tool runs, or its agent has ended", func() bool {
			return len(agentsWith("sleep "+longNap+d.number)) > 0 || len(agentsWith(d.session)) == 0
		})
	case atAnswer:
		close(d.done)
		<-wait.Moment(rand.New(rand.NewPCG(uint64(d.life), 9)), 0, 400*time.Millisecond) // somewhere from the answer to the report
	default:
	}
}

// current reports whether an agent that is due still lives.
func (o *outages) current(d due) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return d.life == o.life[d.replica]+1
}

// moved reports whether another replica goes on with what a replica was at.
func (o *outages) moved(d due) bool {
	last, ok := o.last(d.number)
	return ok && last.replica != d.replica
}

func (o *outages) process(replica string) *process {
	for _, p := range o.c.procs {
		if slices.Contains(p.args, replica) {
			return p
		}
	}
	panic("no replica " + replica)
}

func (o *outages) until(what string, ok func() bool) {
	ctx := wait.Context(o.t)
	if !wait.Poll(ctx, ok) && o.t.Context().Err() == nil {
		o.t.Errorf("never: %s", what)
	}
}

// watch looks for two agents in one session.
func (o *outages) watch(ctx context.Context) {
	wait.Poll(ctx, func() bool {
		o.mu.Lock()
		sessions := map[string]bool{}
		for _, q := range o.asked {
			sessions[q.session] = true
		}
		o.mu.Unlock()
		for s := range sessions {
			if runs := agentsWith(s); len(runs) > 1 {
				o.mu.Lock()
				o.twice[fmt.Sprintf("session %s: %v", s, slices.Sorted(maps.Keys(runs)))] = true
				o.mu.Unlock()
			}
		}
		return false
	})
}

func (o *outages) check(intents, kills int) {
	o.t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.killed) < kills {
		o.t.Errorf("%d kills, want %d at least; left of the plan: %v", len(o.killed), kills, o.plan)
	}
	for what := range o.twice {
		o.t.Errorf("two agents at the same time: %s", what)
	}
	o.checkConversations()
	r := o.c.clone()
	for i := range intents {
		for _, name := range []string{"a", "b", "c", "d"} {
			if name == "d" && fmt.Sprintf("%02d", i) != rejected {
				continue
			}
			if got := r.read(fmt.Sprintf("%s%02d.txt", name, i)); got != name+"\n" {
				o.t.Errorf("%s%02d.txt is %q", name, i, got)
			}
		}
	}
	if n := len(r.subjects()); n != intents+1 {
		o.t.Errorf("main has %d commits; want %d: one for each intent", n, intents+1)
	}
	for _, p := range o.c.procs {
		p.kill()
	}
	o.c.nothingIsLeft()
}

// checkConversations makes sure that each task has one conversation, which went on
// wherever its agent was cut off. The CLI writes what it knows a moment after it has
// sent it to the model.
func (o *outages) checkConversations() {
	o.t.Helper()
	last := map[string]request{}
	var back []string
	for _, q := range o.asked {
		was, known := last[q.number]
		last[q.number] = q
		switch {
		case !known:
		case was.session != q.session:
			o.t.Errorf("intent %s has the sessions %s and %s", q.number, was.session, q.session)
		case was.replica == q.replica && was.life == q.life:
		case was.results > 1 && !q.goesOn:
			o.t.Errorf("intent %s: an agent that had %d tool results in %s begins anew in %s", q.number, was.results, was.replica, q.replica)
		case was.replica == q.replica && q.results < was.results-1:
			back = append(back, fmt.Sprintf("of intent %s, in %s: from %d tool results to %d", q.number, was.replica, was.results, q.results))
		}
	}
	// One whose command was in the hands of the other replica for a moment, which was
	// killed before it asked anything, goes on with what was stored last. That is rare.
	if len(back) > 2 {
		o.t.Errorf("conversations went back: %q", back)
	}
	if q := last[rejected]; !q.mends || !q.goesOn {
		o.t.Errorf("what was rejected is not mended in the session in which it was made: %+v", q)
	}
}
