package runner_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/objects"
	"github.com/pfl-forge/pfl-forge/natsd"
	"github.com/pfl-forge/pfl-forge/services/runner"
	"github.com/pfl-forge/pfl-forge/services/runner/machine"
)

// BenchmarkRestart measures how long a runner needs until it is ready beside
// intents that have all ended, and which part of that is the server's own start,
// the list of summaries, and the journal of the project; and the same without
// the project's snapshot. It fills a store of each size with real work first.
func BenchmarkRestart(b *testing.B) {
	for _, ended := range []int{1_000, 10_000} {
		b.Run(fmt.Sprintf("ended=%d", ended), func(b *testing.B) { restart(b, ended) })
	}
}

func restart(b *testing.B, ended int) {
	b.Helper()
	dir := b.TempDir()
	fill(b, dir, ended)
	took := map[string]time.Duration{}
	rounds, size := 0, 0
	for b.Loop() {
		rounds++
		lap := time.Now()
		part := func(name string) {
			took[name] += time.Since(lap)
			lap = time.Now()
		}
		s := startStore(b, dir)
		part("server")
		conn := connectTo(b, s)
		part("connect")
		if list, err := conn.Journal.Summaries(b.Context(), ""); err != nil || len(list) != ended {
			b.Fatalf("%d summaries, %v", len(list), err)
		}
		part("summaries")
		key := forge.Key{Project: projectOf(0)}
		records, _, err := conn.Journal.Load(b.Context(), key)
		if err != nil {
			b.Fatal(err)
		}
		part("load-project")
		machine.Fold(key, records)
		part("fold-project")
		lap = time.Now() // the fold is garbage by now
		runBriefly(b, conn, func() { part("ready") })
		size = withoutSnapshots(b, conn, func() {
			lap = time.Now()
			runBriefly(b, conn, func() { part("ready-without-snapshot") })
		})
		conn.Close()
		s.Shutdown()
	}
	b.ReportMetric(float64(size)/float64(ended), "snapshot-bytes/ended")
	for name, d := range took {
		b.ReportMetric(float64(d.Milliseconds())/float64(rounds), name+"-ms")
	}
}

// fill has a real runner and workers that succeed at once make so many ended intents.
func fill(b *testing.B, dir string, ended int) {
	b.Helper()
	until := &scope{TB: b}
	defer until.end()
	s := startStore(b, dir)
	until.Cleanup(s.Shutdown)
	f := newForgeSystem(until, s, bareWorkers, 1)
	for left, round := ended, 0; left > 0; round++ {
		n := min(left, 1000)
		saturate(b, f, round, n)
		left -= n
	}
}

// scope is a part of a benchmark whose cleanups are run at its end: a store
// that is filled has to be closed before it is measured.
type scope struct {
	testing.TB

	cleanups []func()
}

func (s *scope) Cleanup(f func()) { s.cleanups = append(s.cleanups, f) }

func (s *scope) end() {
	for _, f := range slices.Backward(s.cleanups) {
		f()
	}
}

// withoutSnapshots does something while the snapshots of all projects are gone,
// and returns their size in bytes.
func withoutSnapshots(b *testing.B, conn *bus.Bus, do func()) (size int) {
	b.Helper()
	list, err := conn.Objects.List(b.Context(), objects.Name{Kind: objects.Snapshot})
	if err != nil || len(list) == 0 {
		b.Fatal(list, err)
	}
	for _, one := range list {
		o, err := conn.Objects.Read(b.Context(), one.Name)
		if err == nil {
			err = conn.Objects.Delete(b.Context(), one.Name)
		}
		if err != nil {
			b.Fatal(err)
		}
		size += len(o.Content)
		defer func() {
			if err := conn.Objects.Put(b.Context(), one.Name, bytes.NewReader(o.Content)); err != nil {
				b.Error(err)
			}
		}()
	}
	do()
	return size
}

func startStore(b *testing.B, dir string) *natsd.Server {
	b.Helper()
	s, err := natsd.Start(b.Context(), natsd.Config{Dir: dir, Purpose: "bench", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	return s
}

func connectTo(b *testing.B, s *natsd.Server) *bus.Bus {
	b.Helper()
	conn, err := bus.Connect(b.Context(), bus.Config{
		URL: s.URL(), Token: s.Token(), Name: "bench", Replicas: 1, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		b.Fatal(err)
	}
	return conn
}

// runBriefly runs a runner until it is ready.
func runBriefly(b *testing.B, conn *bus.Bus, ready func()) {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	var group sync.WaitGroup
	group.Go(func() {
		cfg := runner.Config{Bus: conn, Log: slog.New(slog.DiscardHandler), Ready: func() { ready(); cancel() }}
		if err := runner.Run(ctx, cfg); err != nil {
			b.Error(err)
		}
	})
	group.Wait()
	cancel()
}
