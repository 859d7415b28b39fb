package runner_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/objects"
	"github.com/pfl-forge/pfl-forge/internal/rules"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/natsd"
	"github.com/pfl-forge/pfl-forge/services/runner"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/projects"
	"github.com/pfl-forge/pfl-forge/services/runner/machine"
)

// messagesOfEnded is how many messages the journal of each ended intent has in
// BenchmarkHistory: as many as of an intent of several tasks.
const messagesOfEnded = 20

// BenchmarkHistory measures what 50,000 ended intents with 1,000,000 messages in their
// journals cost the start of a runner, with and without the list of open intents, beside
// 100 ended ones, and what an intent costs then. Processor time is that of the process:
// of server, runner, and the benchmark's own reader. Memory is that of processes which
// only start: runner- is one with a runner alone, and local- one with the server as
// well. Unlike BenchmarkRestart, it makes their journals without running them: a store
// of 1.6 GB, each message flushed. Where that takes hours, TMPDIR has to be in memory.
func BenchmarkHistory(b *testing.B) {
	for _, ended := range []int{100, 50_000} {
		b.Run(fmt.Sprintf("ended=%d", ended), func(b *testing.B) {
			dir := b.TempDir()
			began := time.Now()
			fillHistory(b, dir, ended)
			b.Logf("filled in %s", time.Since(began))
			for b.Loop() {
				measureHistory(b, dir, ended)
			}
		})
	}
}

// measureHistory starts the server and runners.
func measureHistory(b *testing.B, dir string, ended int) {
	b.Helper()
	measureAlone(b, "local", aloneDir+"="+dir)
	began := time.Now()
	s := startStore(b, dir)
	defer s.Shutdown()
	part := func(name string) {
		b.ReportMetric(float64(time.Since(began).Milliseconds()), name+"-ms")
		began = time.Now()
	}
	part("server")
	measureAlone(b, "runner", aloneURL+"="+s.URL(), aloneToken+"="+s.Token())
	conn := connectTo(b, s)
	defer conn.Close()
	began, used := time.Now(), processorTime(b)
	runBriefly(b, conn, func() {
		part("ready")
		b.ReportMetric(float64((processorTime(b) - used).Milliseconds()), "ready-cpu-ms")
	})
	began = time.Now()
	if list, err := conn.Journal.Summaries(b.Context(), ""); err != nil || len(list) != ended+1 {
		b.Fatalf("%d summaries, %v", len(list), err)
	}
	part("summaries")
	if err := conn.Objects.Delete(b.Context(), objects.Name{Kind: objects.Open, ID: machine.Rules()}); err != nil {
		b.Fatal(err)
	}
	began = time.Now()
	runBriefly(b, conn, func() { part("ready-without-list") })
	stepsBesideHistory(b, s)
}

// stepsBesideHistory measures what an intent costs, once a runner has loaded its project.
func stepsBesideHistory(b *testing.B, s *natsd.Server) {
	b.Helper()
	const intents = 200
	runs := &scope{TB: b}
	defer runs.end()
	f := newForgeSystem(runs, s, bareWorkers, 1)
	saturate(b, f, 1, 1) // until the benchmark's own reader has read all journals, which takes minutes
	saturate(b, f, 2, intents)
	began, used := time.Now(), processorTime(b)
	saturate(b, f, 3, intents)
	b.ReportMetric(time.Since(began).Seconds()*1000/intents, "ms/intent")
	b.ReportMetric((processorTime(b)-used).Seconds()*1000/intents, "cpu-ms/intent")
}

// fillHistory has one intent run, and copies its journal to those of others. Their
// project is told of them as in BenchmarkEnded, and a runner keeps a snapshot of that.
func fillHistory(b *testing.B, dir string, ended int) {
	b.Helper()
	until := &scope{TB: b}
	defer until.end()
	s := startStore(b, dir)
	until.Cleanup(s.Shutdown)
	runs := &scope{TB: b}
	f := newForgeSystem(runs, s, bareWorkers, 1)
	saturate(b, f, 0, 1)
	runs.end()
	nc, err := nats.Connect(s.URL(), nats.Token(s.Token()))
	if err != nil {
		b.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc, jetstream.WithPublishAsyncMaxPending(1000))
	if err != nil {
		b.Fatal(err)
	}
	copyJournals(b, js, ended)
	conn := connectTo(b, s)
	defer conn.Close()
	tellProject(b, conn, ended)
	keepSnapshot(b, conn)
}

// endedID returns the id of an ended intent, as long as that of the one that ran.
func endedID(n int) string { return fmt.Sprintf("old%05d", n) }

// copyJournals stores the journal of the one intent under the names of others,
// and that their changes have been published.
func copyJournals(b *testing.B, js jetstream.JetStream, ended int) {
	b.Helper()
	const of = "load-0-0"
	stream, err := js.Stream(b.Context(), "FORGE_JOURNAL")
	if err != nil {
		b.Fatal(err)
	}
	var list []*jetstream.RawStreamMsg
	for seq := uint64(1); seq <= stream.CachedInfo().State.LastSeq; seq++ {
		m, err := stream.GetMsg(b.Context(), seq)
		if err != nil {
			b.Fatal(err)
		}
		list = append(list, m)
	}
	for n := range ended {
		for i := range messagesOfEnded {
			m := list[i%(len(list)-1)]
			if i == messagesOfEnded-1 {
				m = list[len(list)-1]
			}
			copied := &nats.Msg{
				Subject: "forge.journal." + string(projectOf(0)) + "." + endedID(n),
				Data:    bytes.ReplaceAll(m.Data, []byte(of), []byte(endedID(n))), Header: nats.Header{"Forge-Kind": m.Header["Forge-Kind"]},
			}
			if _, err := js.PublishMsgAsync(copied, jetstream.WithStallWait(time.Hour)); err != nil {
				b.Fatal(err)
			}
		}
	}
	<-js.PublishAsyncComplete()
	events, err := js.Stream(b.Context(), "FORGE_EVENTS")
	if err != nil {
		b.Fatal(err)
	}
	last, err := events.GetMsg(b.Context(), events.CachedInfo().State.LastSeq)
	if err != nil {
		b.Fatal(err)
	}
	info, err := stream.Info(b.Context())
	if err != nil || info.State.Msgs < uint64(ended*messagesOfEnded) {
		b.Fatal(info, err)
	}
	last.Header.Set("Forge-Position", fmt.Sprintf("%d/1", info.State.LastSeq))
	last.Header.Del("Nats-Msg-Id")
	last.Header.Del("Nats-Expected-Last-Sequence")
	if _, err := js.PublishMsg(b.Context(), &nats.Msg{Subject: last.Subject, Data: last.Data, Header: last.Header}); err != nil {
		b.Fatal(err)
	}
}

// tellProject appends to the project's journal that so many intents came and ended.
func tellProject(b *testing.B, conn *bus.Bus, ended int) {
	b.Helper()
	key := forge.Key{Project: projectOf(0)}
	records, head, err := conn.Journal.Load(b.Context(), key)
	if err != nil {
		b.Fatal(err)
	}
	p := machine.Fold(key, records).(*projects.Project)
	for n := 0; n < ended; {
		var rec forge.Record
		for range 6 { // a runner decides on 64 events at once at most
			if n < ended {
				rec.Events = append(rec.Events, runThrough(b, p, endedID(n))...)
				n++
			}
		}
		rec.Summary = p.Summary()
		rules.Newest.Stamp(&rec)
		if head, err = conn.Journal.Append(b.Context(), key, head, rec); err != nil {
			b.Fatal(err)
		}
	}
}

// keepSnapshot has a runner fold the project's journal and keep its state, and
// which intents are open.
func keepSnapshot(b *testing.B, conn *bus.Bus) {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	var group sync.WaitGroup
	group.Go(func() {
		if err := runner.Run(ctx, runner.Config{Bus: conn, Log: slog.New(slog.DiscardHandler), SnapshotEvery: 10}); err != nil {
			b.Error(err)
		}
	})
	for _, kind := range []objects.Kind{objects.Snapshot, objects.Open} {
		wait.Until(b, "the "+string(kind)+" is kept", func() bool {
			list, err := conn.Objects.List(b.Context(), objects.Name{Kind: kind})
			return err == nil && len(list) > 0
		})
	}
	cancel()
	group.Wait()
}
