package bus_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/journal/chain"
	"github.com/pfl-forge/pfl-forge/internal/testport"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// plenty is the room that servers believe to have, in bytes. By default it is a part of what the disk
// has free, and what streams may grow to is set aside at once, so a nearly full disk would have none.
const plenty = 1 << 40

// cluster runs three servers, and returns them and their addresses.
func cluster(t *testing.T) ([]*server.Server, string) {
	t.Helper()
	var routes []*url.URL
	var ports []int
	for range 3 {
		port := testport.Free(t)
		ports = append(ports, port)
		routes = append(routes, &url.URL{Scheme: "nats", Host: fmt.Sprint("127.0.0.1:", port)})
	}
	var servers []*server.Server
	var urls []string
	for i, port := range ports {
		s, err := server.NewServer(&server.Options{
			ServerName: fmt.Sprint("s", i), Host: "127.0.0.1", Port: server.RANDOM_PORT,
			JetStream: true, StoreDir: t.TempDir(), JetStreamMaxStore: plenty, DisableJetStreamBanner: true, NoLog: true, NoSigs: true,
			Cluster: server.ClusterOpts{Name: "forge", Host: "127.0.0.1", Port: port, PoolSize: -1}, Routes: routes,
		})
		if err != nil {
			t.Fatal(err)
		}
		s.Start()
		t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
		servers = append(servers, s)
	}
	for _, s := range servers {
		if !s.ReadyForConnections(wait.Patience) {
			t.Fatal("a server is not ready")
		}
		urls = append(urls, s.ClientURL())
	}
	wait.Until(t, "the cluster has a leader", func() bool {
		return slices.ContainsFunc(servers, func(s *server.Server) bool {
			return s.JetStreamIsLeader() && len(s.JetStreamClusterPeers()) == 3
		})
	})
	return servers, strings.Join(urls, ",")
}

// TestCluster checks that the streams can be replicated, that a decision is
// taken once while it is on its way to the other servers, and that the loss of a
// server loses nothing.
func TestCluster(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	servers, urls := cluster(t)
	var buses []*bus.Bus
	for range 3 {
		b, err := bus.Connect(ctx, bus.Config{URL: urls, Replicas: 3})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(b.Close)
		buses = append(buses, b)
	}
	if err := buses[0].Ensure(ctx); err != nil {
		t.Fatal(err)
	}
	seen := collect(t, buses[0])
	var seq chain.Head
	for round := range 5 {
		seq = race(ctx, t, buses, seq, round)
	}
	eff := forge.Effects{
		Commands: []forge.Command{command(1)},
		Timers:   []forge.Timer{{To: key, Key: "t", At: time.Now()}},
	}
	for _, b := range buses {
		if err := b.Effects.Dispatch(ctx, key, eff); err != nil {
			t.Fatal(err)
		}
	}
	wait.For(t, seen)
	reported := publish(ctx, buses[1], result(1, "a"))
	copies := func(missing bool) func() bool {
		return func() bool {
			n, err := buses[1].MissingCopies(ctx)
			return err == nil && n > 0 == missing
		}
	}
	wait.Until(t, "each server has its copies", copies(false))
	servers[0].Shutdown()
	if err := wait.For(t, reported); err != nil {
		t.Errorf("a result that a worker told when a server went: %v", err)
	}
	wait.Until(t, "copies are missing", copies(true))
	for _, b := range buses {
		if recs, last, err := b.Journal.Load(ctx, key); err != nil || len(recs) != 5 || last != seq {
			t.Errorf("the journal has %d records up to %v, %v", len(recs), last, err)
		}
		if list, err := b.Journal.Summaries(ctx, ""); err != nil || len(list) != 1 {
			t.Errorf("the list is %+v, %v", list, err)
		}
	}
}

// TestStalled checks that a stream in memory that lost its leader for good is made
// again from the journals, which have one.
func TestStalled(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	ctx := wait.Context(t)
	servers, urls := cluster(t)
	b, err := bus.Connect(ctx, bus.Config{URL: urls, Replicas: 3})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := b.Ensure(ctx); err != nil {
		t.Fatal(err)
	}
	b.StalledAfter(0)
	collect(t, b) // it is the consumers that notice first
	rebuilt := make(chan struct{}, 100)
	guarding, stop := context.WithCancel(ctx)
	guarded := make(chan struct{})
	go func() {
		defer close(guarded)
		b.Guard(guarding, func(context.Context) error { rebuilt <- struct{}{}; return nil })
	}()
	defer func() { stop(); <-guarded }()
	wait.For(t, rebuilt)

	nc, err := nats.Connect(urls)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js := jetStream(t, nc)
	wakes, err := js.Stream(ctx, "FORGE_WAKES")
	if err != nil {
		t.Fatal(err)
	}
	cfg := wakes.CachedInfo().Config
	cfg.Replicas = 1 // so that one server is enough to stall it
	if _, err := js.UpdateStream(ctx, cfg); err != nil {
		t.Fatal(err)
	}
	var leader string
	wait.Until(t, "one server has the stream", func() bool {
		info, err := wakes.Info(t.Context()) // without a deadline: one that is not answered is asked again
		if err != nil || info.Cluster == nil || len(info.Cluster.Replicas) > 0 {
			return false
		}
		leader = info.Cluster.Leader
		return leader != ""
	})
	for _, s := range servers {
		if s.Name() == leader {
			s.Shutdown()
		}
	}
	wait.For(t, rebuilt)
	timers := forge.Effects{Timers: []forge.Timer{{To: key, Key: "t", At: time.Now()}}}
	if err := b.Effects.Dispatch(ctx, key, timers); err != nil {
		t.Error(err)
	}
}

// race lets many append at once, and returns the head after it: there is one
// record more, whatever was answered. Who is not answered by a cluster that is
// busy knows nothing, and may have won; if nobody has, the race is run again.
func race(ctx context.Context, t *testing.T, buses []*bus.Bus, seq chain.Head, round int) chain.Head {
	t.Helper()
	var wins, unknown atomic.Int32 // in all runs: what was not answered may be stored after the next one began
	for {
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				switch _, err := buses[i%len(buses)].Journal.Append(ctx, key, seq, record(key, i)); {
				case err == nil:
					wins.Add(1)
				case !errors.Is(err, bus.ErrConflict):
					unknown.Add(1)
					t.Logf("racer %d: %v", i, err)
				}
			})
		}
		wg.Wait()
		recs, last, err := buses[0].Journal.Load(ctx, key)
		switch n := wins.Load(); {
		case err != nil, len(recs) > round+1, n > 1, n == 0 && unknown.Load() == 0, n == 1 && len(recs) != round+1:
			t.Fatalf("round %d has %d winners, and there are %d records, %v", round, n, len(recs), err)
		case len(recs) == round+1:
			return last
		}
	}
}
