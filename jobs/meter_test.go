package jobs_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"regexp"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/objects"
	"github.com/pfl-forge/pfl-forge/git/gittest"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/jobs"
	"github.com/pfl-forge/pfl-forge/jobs/repotest"
	"github.com/pfl-forge/pfl-forge/jobs/sessions"
)

// mortal is an agent whose service is killed as often as it says, after two requests
// to its model. It needs one more to be done.
type mortal struct{ kills int }

func (m *mortal) Name() string { return "claude" }

func (m *mortal) Run(_ context.Context, _ agent.Call, sink func(agent.Event)) (agent.Outcome, error) {
	for n := range int64(2) {
		sink(agent.Event{Kind: agent.EventUsage, Usage: forge.Usage{InputTokens: 10 * (n + 1)}})
	}
	if m.kills--; m.kills >= 0 {
		runtime.Goexit() // nothing after this happens, as when the process is gone
	}
	return agent.Outcome{Usage: forge.Usage{InputTokens: 30, Calls: 1}}, nil
}

// TestKilledLivesCount: what an attempt used in services that were killed is in the
// result of the one that ends it, once.
func TestKilledLivesCount(t *testing.T) {
	t.Parallel()
	m := &mortal{kills: 2}
	set := repotest.Local(t, gittest.New(t, map[string]string{"pfl-forge.yaml": "agent: claude\n"}).Dir, m)
	state := t.TempDir()
	live := func(number, claim int) (res forge.Result) {
		cmd := forge.Command{
			BudgetUSD: 5,
			To:        forge.Key{Project: repotest.Project, Intent: "fix"},
			Attempt:   forge.Attempt{Step: forge.StepAnalyze, Number: number, Claim: claim},
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			res = set.Do(context.Background(), &cmd, func(forge.Progress) {}, func(ctx context.Context, j *jobs.Job) error {
				_, err := j.Run(ctx, agent.Call{Role: agent.RoleAnalyze, StateDir: state})
				return err
			})
		}()
		<-done
		return res
	}
	live(1, 1)
	live(1, 2)
	if got := live(1, 2).Usage.InputTokens; got != 20+20+30 {
		t.Errorf("the attempt used %d tokens, want those of its three lives, 70", got)
	}
	if got := live(2, 1).Usage.InputTokens; got != 30 {
		t.Errorf("the next attempt used %d tokens, want its own 30", got)
	}
}

// wanderer is an agent that uses some tokens at a time, until its service is killed
// or it is done.
type wanderer struct {
	t     *testing.T
	saved func() int64 // tokens in what replicas hand on just now
	until int64        // so many have to be in it before it goes on
	uses  []int64      // tokens until what it does is saved, and then
	dies  bool
}

func (*wanderer) Name() string { return "claude" }

func (w *wanderer) Run(_ context.Context, _ agent.Call, sink func(agent.Event)) (agent.Outcome, error) {
	sink(agent.Event{Kind: agent.EventUsage, Usage: forge.Usage{InputTokens: w.uses[0]}})
	if !wait.Poll(wait.Context(w.t), func() bool { return w.saved() == w.until }) {
		w.t.Errorf("%d tokens are saved, want %d", w.saved(), w.until)
	}
	all := forge.Usage{InputTokens: w.uses[0] + w.uses[1]}
	sink(agent.Event{Kind: agent.EventUsage, Usage: all})
	if w.dies {
		runtime.Goexit() // nothing after this happens, as when the process is gone
	}
	return agent.Outcome{Usage: all}, nil
}

// TestTakenOverLivesCount: what an attempt used in other replicas is in the result of
// the one that ends it: what they had saved, once.
func TestTakenOverLivesCount(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	origin := gittest.New(t, map[string]string{"pfl-forge.yaml": "agent: claude\n"}).Origin()
	store := bustest.Start(t).Objects
	name := objects.Name{Project: repotest.Project, Intent: "fix", Kind: objects.Session}
	w := &wanderer{t: t, saved: func() (sum int64) {
		var b bytes.Buffer
		if err := store.Get(t.Context(), name, &b); errors.Is(err, bus.ErrNotFound) {
			return 0
		} else if err != nil {
			t.Error(err)
			return 0
		}
		unzipped, err := gzip.NewReader(&b)
		if err != nil {
			t.Error(err)
			return 0
		}
		archive, err := io.ReadAll(unzipped)
		if err != nil {
			t.Error(err)
		}
		for _, found := range regexp.MustCompile(`"InputTokens":(\d+)`).FindAllSubmatch(archive, -1) {
			n, _ := strconv.ParseInt(string(found[1]), 10, 64)
			sum += n
		}
		return sum
	}}
	one, two := repotest.Replica(t, origin, store, w), repotest.Replica(t, origin, store, w)
	for i, life := range []struct {
		host          *jobs.Set
		number, claim int
		saved, then   int64 // tokens that it uses
		known         int64 // tokens in the ledger when the first are saved
		dies          bool
		want          int64
	}{
		{one, 1, 1, 20, 3, 20, true, 0},
		{two, 1, 1, 100, 40, 120, true, 0},
		{one, 1, 1, 1000, 0, 1123, false, 20 + 3 + 100 + 1000}, // its own to the last, of the other what was saved
		{two, 1, 2, 7, 0, 1170, false, 7},                      // the claim before has told what it used
		{one, 1, 2, 8, 0, 1178, true, 0},
		{two, 1, 2, 9, 0, 1187, false, 7 + 8 + 9}, // the same claim comes again: nobody was told
		{one, 2, 1, 5, 0, 5, false, 5},
	} {
		w.uses, w.until, w.dies = []int64{life.saved, life.then}, life.known, life.dies
		cmd := forge.Command{
			BudgetUSD: 5,
			To:        forge.Key{Project: repotest.Project, Intent: "fix"},
			Attempt:   forge.Attempt{Step: forge.StepAnalyze, Number: life.number, Claim: life.claim}, Session: talk,
		}
		var res forge.Result
		var running sync.WaitGroup
		running.Go(func() {
			res = life.host.Do(context.Background(), &cmd, func(forge.Progress) {}, func(ctx context.Context, j *jobs.Job) error {
				dir := j.StateDir("fix-analyze")
				if _, err := j.FetchSession(ctx, dir); err != nil {
					return err
				}
				_, err := j.CallInSession(ctx, agent.Call{Role: agent.RoleAnalyze, StateDir: dir}, sessions.Call{
					Prompts: func(sessions.Start) (string, string, error) { return "", "", nil },
				})
				j.SaveSession(ctx, dir, nil)
				return err
			})
		})
		running.Wait()
		if res.Failure() != nil || res.Usage.InputTokens != life.want {
			t.Errorf("life %d: %d tokens, want %d; %+v", i, res.Usage.InputTokens, life.want, res.Failure())
		}
	}
}
