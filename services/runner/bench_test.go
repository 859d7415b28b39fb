package runner_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/journal"
	"github.com/pfl-forge/pfl-forge/bus/work"
	"github.com/pfl-forge/pfl-forge/internal/telemetry/export"
	"github.com/pfl-forge/pfl-forge/natsd"
	"github.com/pfl-forge/pfl-forge/service"
	"github.com/pfl-forge/pfl-forge/services/runner"
)

// meeting is where the ends of intents are waited for, and where the time from
// a result to the next command received is taken.
type meeting struct {
	mu    sync.Mutex
	ends  map[string]chan time.Time
	since map[string]time.Time // a worker was done, by intent
	gaps  []time.Duration
}

func newMeeting() *meeting {
	return &meeting{ends: map[string]chan time.Time{}, since: map[string]time.Time{}}
}

func (m *meeting) end(id string) chan time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.ends[id]
	if c == nil {
		c = make(chan time.Time, 1)
		m.ends[id] = c
	}
	return c
}

func (m *meeting) arrive(id string) {
	select {
	case m.end(id) <- time.Now():
	default:
	}
}

func (m *meeting) wait(id string) time.Time { return <-m.end(id) }

// received takes the time for the steps that one decision leads to directly.
func (m *meeting) received(id, step string) {
	now := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	if at, ok := m.since[id]; ok && (step == "implement" || step == "rebase" || step == "review") {
		m.gaps = append(m.gaps, now.Sub(at))
	}
}

func (m *meeting) done(id, _ string) {
	now := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.since[id] = now
}

// forgeSystem is a runner with workers that do nothing but succeed.
type forgeSystem struct {
	bus *bus.Bus
	// asks is the connection of who submits as a person of a name; the runner's, and
	// nobody's name, where accounts are not told apart.
	asks *bus.Bus
	name string
	// sees is the connection that follows journals, which a runner's account may not.
	sees     *bus.Bus
	meet     *meeting
	projects int
}

// workers works until ctx ends.
type workers func(ctx context.Context, b testing.TB, conn *bus.Bus, meet *meeting)

// bareWorkers take commands and answer, which is all that the reference loop does.
func bareWorkers(ctx context.Context, _ testing.TB, conn *bus.Bus, meet *meeting) {
	var group sync.WaitGroup
	for _, step := range forge.Steps() {
		group.Go(func() { bareWorker(ctx, step, conn, meet) })
	}
	group.Wait()
}

// bareWorker takes the commands of one step, and answers.
func bareWorker(ctx context.Context, step forge.Step, conn *bus.Bus, meet *meeting) {
	_ = conn.Commands.Consume(ctx, work.Config{Step: step, Replica: "noop", Parallel: 64}, func(ctx context.Context, j *work.Job) error {
		id := string(j.Command.To.Intent)
		meet.received(id, string(step))
		meet.done(id, string(step))
		return conn.Results.Publish(ctx, succeed(j.Command))
	})
}

// serviceWorkers are the real ones: they ask whether an attempt is wanted, tell how
// it goes, and keep their results in an outbox.
func serviceWorkers(ctx context.Context, b testing.TB, conn *bus.Bus, meet *meeting) {
	b.Helper()
	log := slog.New(slog.DiscardHandler)
	outbox, err := service.OpenOutbox(b.TempDir(), log)
	if err != nil {
		b.Error(err)
		return
	}
	w := &service.Worker{Bus: conn, Replica: "noop", Log: log, Parallel: 64, Outbox: outbox}
	for _, step := range forge.Steps() {
		w.Handlers = append(w.Handlers, service.Handler{Step: step, Do: func(_ context.Context, cmd forge.Command, _ service.Progress) forge.Result {
			meet.received(string(cmd.To.Intent), string(step))
			meet.done(string(cmd.To.Intent), string(step))
			return succeed(cmd)
		}})
	}
	if err := w.Run(ctx); err != nil {
		b.Error(err)
	}
}

func newForgeSystem(b testing.TB, s *natsd.Server, work workers, projects int) *forgeSystem {
	b.Helper()
	conn, err := bus.Connect(b.Context(), bus.Config{
		URL: s.URL(), Token: s.Token(), Name: "bench", Replicas: 1, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(conn.Close)
	f := &forgeSystem{bus: conn, asks: conn, sees: conn, meet: newMeeting(), projects: projects}
	f.start(b, runner.Config{}, work)
	return f
}

// start starts the runner, with what the configuration says beside its bus, and the
// workers.
func (f *forgeSystem) start(b testing.TB, cfg runner.Config, work workers) {
	b.Helper()
	measured, err := export.Open(b.Context(), export.Config{Service: "runner", Scrape: true, Getenv: os.Getenv, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	b.Cleanup(func() {
		cancel()
		group.Wait()
		if err := measured.Close(); err != nil {
			b.Error(err)
		}
	})
	ready := make(chan struct{})
	group.Go(func() {
		cfg.Rules.Alone = true // what takes a runner ten minutes to say, once it knows that no older one is there, it says at once
		cfg.Bus, cfg.Log, cfg.Ready, cfg.Metrics = f.bus, slog.New(slog.DiscardHandler), func() { close(ready) }, measured.Recorder
		if err := runner.Run(ctx, cfg); err != nil {
			b.Error(err)
		}
	})
	<-ready
	group.Go(func() { work(ctx, b, f.bus, f.meet) })
	for n := range f.projects {
		group.Go(func() { f.follow(ctx, projectOf(n)) })
	}
}

// projectOf is the nth of several projects.
func projectOf(n int) forge.ProjectID { return forge.ProjectID(fmt.Sprintf("web%d", n)) }

// place says which of several projects an intent is of.
func place(id string, projects int) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id))
	return int(h.Sum32()) % projects
}

// follow notes the ends of a project's intents.
func (f *forgeSystem) follow(ctx context.Context, p forge.ProjectID) {
	_ = f.sees.Journal.Follow(ctx, p, 0, journal.Follower{Record: func(key forge.Key, _ uint64, rec forge.Record) error {
		if !key.IsProject() && rec.Summary.Status == forge.StatusDone && rec.Summary.Idle {
			f.meet.arrive(string(key.Intent))
		}
		return nil
	}})
}

func (f *forgeSystem) submit(ctx context.Context, id forge.IntentID) error {
	ev := submission(id)
	ev.To.Project = projectOf(place(string(id), f.projects))
	forge.As[*forge.Submit](ev.Message).Intent.Project = ev.To.Project
	ev.Actor = f.name
	return f.asks.Submissions.Send(ctx, ev)
}

func (f *forgeSystem) wait(id forge.IntentID) time.Time { return f.meet.wait(string(id)) }

// system is what is measured.
type system interface {
	submit(ctx context.Context, id forge.IntentID) error
	wait(id forge.IntentID) time.Time
}

// saturate returns the intents per second of n intents that come at once.
func saturate(b *testing.B, s system, round, n int) float64 {
	b.Helper()
	began := time.Now()
	ids := make([]forge.IntentID, n)
	var group sync.WaitGroup
	for i := range ids {
		ids[i] = forge.IntentID(fmt.Sprintf("load-%d-%d", round, i))
	}
	for part := range slices.Chunk(ids, max(1, n/16)) {
		group.Go(func() {
			for _, id := range part {
				if err := s.submit(b.Context(), id); err != nil && !errors.Is(err, context.Canceled) {
					b.Error(err)
				}
			}
		})
	}
	group.Wait()
	var last time.Time
	for _, id := range ids {
		if at := s.wait(id); at.After(last) {
			last = at
		}
	}
	return float64(n) / last.Sub(began).Seconds()
}

// trickle returns the gaps between steps of n intents that come one by one.
func trickle(b *testing.B, s system, m *meeting, round, n int) []time.Duration {
	b.Helper()
	m.mu.Lock()
	m.gaps = nil
	m.mu.Unlock()
	for i := range n {
		id := forge.IntentID(fmt.Sprintf("single-%d-%d", round, i))
		if err := s.submit(b.Context(), id); err != nil {
			b.Fatal(err)
		}
		s.wait(id)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	slices.Sort(m.gaps)
	return slices.Clone(m.gaps)
}

// BenchmarkOrchestration measures what the rules cost beyond the durable writes
// that they need: intents per second at saturation, and the time from a result to
// the next command at low load, each as a ratio to the reference loop in the same
// run, in turn. Every write is fsynced.
func BenchmarkOrchestration(b *testing.B) {
	for _, projects := range []int{1, 4} {
		b.Run(fmt.Sprintf("projects=%d", projects), func(b *testing.B) { orchestrate(b, bareWorkers, projects) })
	}
}

// BenchmarkWorkers is BenchmarkOrchestration with workers as they are in service.
func BenchmarkWorkers(b *testing.B) { orchestrate(b, serviceWorkers, 1) }

func orchestrate(b *testing.B, work workers, projects int) {
	b.Helper()
	service.CollectSeldom(os.Getenv) // as every main does
	server, err := natsd.Start(b.Context(), natsd.Config{Dir: b.TempDir(), Purpose: "bench", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(server.Shutdown)
	ours, ref := newForgeSystem(b, server, work, projects), newReference(b, server, projects)
	const many, few = 500, 30
	var rate, refRate []float64
	var gaps, refGaps []time.Duration
	round := 0
	for b.Loop() {
		round++
		rate = append(rate, saturate(b, ours, round, many))
		refRate = append(refRate, saturate(b, ref, round, many))
		gaps = append(gaps, trickle(b, ours, ours.meet, round, few)...)
		refGaps = append(refGaps, trickle(b, ref, ref.meet, round, few)...)
	}
	slices.Sort(rate)
	slices.Sort(refRate)
	slices.Sort(gaps)
	slices.Sort(refGaps)
	us := func(list []time.Duration, p int) float64 {
		return float64(list[min(len(list)-1, len(list)*p/100)].Microseconds())
	}
	b.ReportMetric(rate[len(rate)/2], "intents/s")
	b.ReportMetric(refRate[len(refRate)/2], "ref-intents/s")
	b.ReportMetric(rate[len(rate)/2]/refRate[len(refRate)/2], "saturation-ratio")
	b.ReportMetric(us(gaps, 50), "step-p50-us")
	b.ReportMetric(us(gaps, 99), "step-p99-us")
	b.ReportMetric(us(refGaps, 50), "ref-step-p50-us")
	b.ReportMetric(us(refGaps, 99), "ref-step-p99-us")
	b.ReportMetric(us(gaps, 50)/us(refGaps, 50), "step-ratio")
	intents := float64(round * (many + few))
	b.ReportMetric(ref.stored(b, "FORGE_")/intents, "writes/intent")
	b.ReportMetric(ref.stored(b, "REF_")/intents, "ref-writes/intent")
}
