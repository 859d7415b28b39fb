package bus_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/journal/chain"
	"github.com/pfl-forge/pfl-forge/internal/testoutput"
	"github.com/pfl-forge/pfl-forge/internal/testport"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// awaited is a call of Await.
type awaited struct {
	bus *bus.Bus
	err error
}

// await calls Await, and returns its causes and its outcome.
func await(ctx context.Context, cfg bus.Config, refusedFor time.Duration) (causes chan error, done chan awaited) {
	causes, done = make(chan error, 1000), make(chan awaited, 1)
	go func() {
		b, err := bus.Await(ctx, cfg, bus.Waiting{RefusedFor: refusedFor, Report: func(cause error) {
			select {
			case causes <- cause:
			default:
			}
		}})
		done <- awaited{b, err}
	}()
	return causes, done
}

// mentions waits for a cause that mentions a text.
func mentions(t *testing.T, causes <-chan error, text string) {
	t.Helper()
	for {
		if cause := wait.For(t, causes); strings.Contains(cause.Error(), text) {
			return
		}
	}
}

// TestAwaitName checks that a name that does not resolve is waited for, together with servers
// that are there, and that the wait ends with its context.
func TestAwaitName(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(wait.Context(t))
	causes, done := await(ctx, bus.Config{URL: "nats://nats.invalid:4222"}, 0)
	mentions(t, causes, "nats.invalid")
	mentions(t, causes, "nats.invalid")
	cancel()
	if got := wait.For(t, done); got.err == nil {
		t.Error("connected to a name that does not exist")
	}
	s := bustest.StartServer(t)
	_, done = await(wait.Context(t), bus.Config{URL: "nats://nats.invalid:4222," + s.URL()}, 0)
	got := wait.For(t, done)
	if got.err != nil {
		t.Fatal(got.err)
	}
	got.bus.Close()
}

// TestAwaitEndsInATry checks that a try that takes long does not delay the end.
func TestAwaitEndsInATry(t *testing.T) {
	t.Parallel()
	s := bustest.StartServer(t)
	s.Stop()
	asked := s.Occupy(t, bustest.Silence).Asked()
	ctx, cancel := context.WithCancel(wait.Context(t))
	_, done := await(ctx, bus.Config{URL: s.URL()}, 0)
	wait.For(t, asked)
	cancel()
	if got := wait.For(t, done); !errors.Is(got.err, context.Canceled) {
		t.Errorf("got %v", got.err)
	}
}

// TestAwaitCredentials checks that refused credentials are given a while, and then are the
// error.
func TestAwaitCredentials(t *testing.T) {
	t.Parallel()
	opts := &server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, Authorization: "old", NoLog: true, NoSigs: true,
		JetStream: true, StoreDir: t.TempDir(),
	}
	s := start(t, opts)
	cfg := bus.Config{URL: s.ClientURL(), Token: "new"}
	_, done := await(wait.Context(t), cfg, 0)
	if got := wait.For(t, done); !errors.Is(got.err, bus.ErrCredentials) {
		t.Errorf("got %v", got.err)
	}
	_, done = await(wait.Context(t), bus.Config{URL: s.ClientURL(), ReadToken: func() (string, error) { return "", errors.New("no such file") }}, 0)
	if got := wait.For(t, done); !errors.Is(got.err, bus.ErrCredentials) {
		t.Errorf("a token that cannot be read: %v", got.err)
	}
	_, done = await(wait.Context(t), bus.Config{URL: s.ClientURL(), Creds: "missing"}, 0)
	if got := wait.For(t, done); !errors.Is(got.err, bus.ErrCredentials) {
		t.Errorf("a file that is not there: %v", got.err)
	}
	causes, done := await(wait.Context(t), cfg, time.Hour)
	mentions(t, causes, "Authorization Violation")
	changed := opts.Clone()
	changed.Port, changed.Authorization = s.Addr().(*net.TCPAddr).Port, "new"
	if err := s.ReloadOptions(changed); err != nil {
		t.Fatal(err)
	}
	got := wait.For(t, done)
	if got.err != nil {
		t.Fatal(got.err)
	}
	got.bus.Close()
}

// start runs a server until the test ends.
func start(t *testing.T, opts *server.Options) *server.Server {
	t.Helper()
	s, err := server.NewServer(opts)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(wait.Patience) {
		t.Fatal("the server is not ready")
	}
	return s
}

// TestAwaitRights checks that a right that is missing is named at once, not waited for: to
// read the journal, to hear answers, and to make streams and consumers.
func TestAwaitRights(t *testing.T) {
	t.Parallel()
	deny := func(subjects ...string) *server.SubjectPermission { return &server.SubjectPermission{Deny: subjects} }
	users := map[string]*server.Permissions{
		"deaf":      {Subscribe: deny("_INBOX.>")},
		"blind":     {Publish: deny("$JS.API.STREAM.MSG.GET.FORGE_JOURNAL")},
		"streams":   {Publish: deny("$JS.API.STREAM.CREATE.FORGE_LEASES")},
		"consumers": {Publish: deny("$JS.API.CONSUMER.CREATE.FORGE_COMMANDS.>")},
	}
	opts := &server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoLog: true, NoSigs: true, JetStream: true, StoreDir: t.TempDir()}
	for name, permissions := range users {
		opts.Users = append(opts.Users, &server.User{Username: name, Password: "x", Permissions: permissions})
	}
	s := start(t, opts)
	as := func(name string) bus.Config {
		return bus.Config{URL: strings.Replace(s.ClientURL(), "://", "://"+name+":x@", 1), Replicas: 1}
	}
	for name, right := range map[string]string{
		"deaf":  "listening on _INBOX.",
		"blind": "publishing on $JS.API.STREAM.MSG.GET.FORGE_JOURNAL",
	} {
		_, done := await(wait.Context(t), as(name), time.Hour)
		if got := wait.For(t, done); !errors.Is(got.err, bus.ErrNotAllowed) || !strings.Contains(got.err.Error(), right) {
			t.Errorf("%s: %v", name, got.err)
		}
	}
	for _, tt := range []struct{ name, right string }{
		{"streams", "publishing on $JS.API.STREAM.CREATE.FORGE_LEASES"},
		{"consumers", "publishing on $JS.API.CONSUMER.CREATE.FORGE_COMMANDS.analyze."}, // once the streams are there
	} {
		_, done := await(wait.Context(t), as(tt.name), 0)
		got := wait.For(t, done)
		if got.err != nil {
			t.Fatal(got.err)
		}
		defer got.bus.Close()
		if err := got.bus.AwaitStreams(wait.Context(t)); !errors.Is(err, bus.ErrNotAllowed) || !strings.Contains(err.Error(), tt.right) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// TestAwaitStreamsEnds checks that what waiting cannot mend is an error at once: copies on a
// single server, and a stream of somebody else on the same subjects.
func TestAwaitStreamsEnds(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	s := bustest.StartServer(t)
	b, err := bus.Await(ctx, bus.Config{URL: s.URL(), Replicas: 3}, bus.Waiting{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := b.AwaitStreams(ctx); !errors.Is(err, bus.ErrReplicas) {
		t.Errorf("three copies on one server: %v", err)
	}
	js := jetStream(t, raw(t, s))
	if _, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: "OTHERS", Subjects: []string{"forge.journal.>"}}); err != nil {
		t.Fatal(err)
	}
	single, err := bus.Await(ctx, bus.Config{URL: s.URL(), Replicas: 1}, bus.Waiting{})
	if err != nil {
		t.Fatal(err)
	}
	defer single.Close()
	if err := single.AwaitStreams(ctx); err == nil || !strings.Contains(err.Error(), "subjects overlap") {
		t.Errorf("a stream of others is in the way: %v", err)
	}
}

// lateCluster prepares three servers of a cluster, and returns how to start each.
func lateCluster(t *testing.T) (urls string, run func(i int) *server.Server) {
	t.Helper()
	var routes []*url.URL
	var clients []string
	var ports []int
	for range 6 {
		ports = append(ports, testport.Free(t))
	}
	var stores []string
	for i := range 3 {
		stores = append(stores, t.TempDir())
		routes = append(routes, &url.URL{Scheme: "nats", Host: fmt.Sprint("127.0.0.1:", ports[i])})
		clients = append(clients, fmt.Sprint("nats://127.0.0.1:", ports[3+i]))
	}
	return strings.Join(clients, ","), func(i int) *server.Server {
		return start(t, &server.Options{
			ServerName: fmt.Sprint("s", i), Host: "127.0.0.1", Port: ports[3+i],
			JetStream: true, StoreDir: stores[i], JetStreamMaxStore: plenty, DisableJetStreamBanner: true, NoLog: true, NoSigs: true,
			Cluster: server.ClusterOpts{Name: "forge", Host: "127.0.0.1", Port: ports[i], PoolSize: -1}, Routes: routes,
		})
	}
}

// TestAwaitCluster starts a runner's connection first, and then the servers of a cluster, of
// which the first alone has no leader. When the other two go before the streams are made, they
// are made as soon as there is a leader again.
func TestAwaitCluster(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	ctx := wait.Context(t)
	urls, run := lateCluster(t)
	var log testoutput.Output
	causes, done := await(ctx, bus.Config{URL: urls, Replicas: 3, Logger: slog.New(slog.NewTextHandler(&log, nil))}, 0)
	mentions(t, causes, "connection refused")
	run(0)
	mentions(t, causes, "JetStream")
	others := []*server.Server{run(1), run(2)}
	got := wait.For(t, done)
	if got.err != nil {
		t.Fatal(got.err)
	}
	defer got.bus.Close()
	for _, s := range others {
		s.Shutdown()
		s.WaitForShutdown()
	}
	made := make(chan error, 1)
	go func() { made <- got.bus.AwaitStreams(ctx) }()
	wait.Until(t, "the streams are waited for", func() bool { return strings.Count(log.String(), "the streams cannot be made yet; waiting") == 1 })
	run(1)
	run(2)
	if err := wait.For(t, made); err != nil {
		t.Fatal(err)
	}
	if waited := strings.Count(log.String(), "the streams cannot be made yet; waiting"); strings.Count(log.String(), "the streams are there") != min(waited, 1) {
		t.Error("the end of the waiting is not told, or told without one")
	}
	if _, err := got.bus.Journal.Append(ctx, key, chain.Head{}, record(key, 0)); err != nil {
		t.Error(err)
	}
}

// TestEnsureMakesConsumers checks that where only a runner has ever been, there is a
// consumer for the commands of every step, and that the workers take it as it is.
func TestEnsureMakesConsumers(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	s := bustest.StartServer(t)
	b := s.Connect(t)
	js := jetStream(t, raw(t, s))
	stream, err := js.Stream(ctx, "FORGE_COMMANDS")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for name := range stream.ConsumerNames(ctx).Name() {
		names = append(names, name)
	}
	slices.Sort(names)
	var want []string
	for _, step := range forge.Steps() {
		want = append(want, string(step))
	}
	slices.Sort(want)
	if !slices.Equal(names, want) {
		t.Fatalf("the consumers are %v, want %v", names, want)
	}
	if err := b.Effects.Dispatch(ctx, key, forge.Effects{Commands: []forge.Command{command(1)}}); err != nil {
		t.Fatal(err)
	}
	step := string(command(1).Attempt.Step)
	for _, name := range names {
		pending := uint64(0)
		if name == step {
			pending = 1
		}
		// A consumer hears a moment later of what is in its stream.
		wait.Until(t, fmt.Sprintf("%d commands wait for %s", pending, name), func() bool {
			c, err := stream.Consumer(ctx, name)
			return err == nil && c.CachedInfo().NumPending == pending
		})
	}
}
