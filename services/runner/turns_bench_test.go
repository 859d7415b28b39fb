package runner_test

import (
	"log/slog"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/natsd"
	"github.com/pfl-forge/pfl-forge/service"
	"github.com/pfl-forge/pfl-forge/services/runner"
)

// BenchmarkTurns measures what it costs that projects take turns, as ratios to a runner that has
// none take turns, in the same run and in turn: intents per second where four projects have more to
// do than there is room for, and the time from a result to the next command where nothing waits.
func BenchmarkTurns(b *testing.B) {
	service.CollectSeldom(os.Getenv)
	const projects, many, few = 4, 500, 30
	start := func(cfg runner.Config) *forgeSystem {
		server, err := natsd.Start(b.Context(), natsd.Config{Dir: b.TempDir(), Purpose: "bench", Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(server.Shutdown)
		conn := connectTo(b, server)
		f := &forgeSystem{bus: conn, asks: conn, sees: conn, meet: newMeeting(), projects: projects}
		f.start(b, cfg, bareWorkers)
		return f
	}
	with, without := start(runner.Config{}), start(runner.Config{OneProject: true})
	var rates, gaps []float64
	round := 0
	for b.Loop() {
		round++
		of := func(f *forgeSystem) (rate float64, gap time.Duration) {
			rate = saturate(b, f, round, many)
			list := trickle(b, f, f.meet, round, few)
			return rate, list[len(list)/2]
		}
		rate, gap := of(with)
		other, otherGap := of(without)
		rates, gaps = append(rates, rate/other), append(gaps, float64(gap)/float64(otherGap))
	}
	slices.Sort(rates)
	slices.Sort(gaps)
	b.ReportMetric(rates[len(rates)/2], "saturation-ratio")
	b.ReportMetric(gaps[len(gaps)/2], "step-ratio")
}
