package natsd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sys/unix"

	"github.com/pfl-forge/pfl-forge/internal/testoutput"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

func TestStartServesAndShutsDown(t *testing.T) {
	dir := storeIn(t)
	s := start(t, dir)
	if _, err := nats.Connect(s.URL(), nats.NoReconnect()); err == nil {
		t.Error("connected without the token")
	}
	if js := s.nats.JetStreamConfig(); !js.SyncAlways || js.MaxStore != defaultMaxStore || js.MaxMemory != defaultMaxMemory {
		t.Errorf("jetstream runs with %+v", js)
	}
	js := connect(t, s.Endpoint())
	if _, err := js.Publish(t.Context(), "s.a", nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Healthy(t.Context()); err != nil {
		t.Error(err)
	}
	for name, want := range map[string]os.FileMode{".": 0o700, clientFile: 0o600, lockFile: 0o600} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %#o, want %#o", name, got, want)
		}
	}

	var wg sync.WaitGroup
	for range 4 {
		wg.Go(s.Shutdown)
	}
	wg.Wait()
	<-s.Done()
	if err := s.Healthy(t.Context()); !errors.Is(err, ErrStopped) {
		t.Errorf("healthy after shutdown: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, clientFile)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("client.json is still there: %v", err)
	}
	if _, err := Find(t.Context(), "", dir); !errors.Is(err, ErrNotRunning) {
		t.Errorf("found a stopped server: %v", err)
	}

	again := start(t, dir)
	msg, err := connect(t, again.Endpoint()).Stream(t.Context(), "S")
	if err != nil {
		t.Fatal(err)
	}
	if n := msg.CachedInfo().State.Msgs; n != 1 {
		t.Errorf("%d messages after the restart, want 1", n)
	}
}

func TestSecondStartIsRefused(t *testing.T) {
	dir := storeIn(t)
	s := start(t, dir)
	_, err := Start(t.Context(), config(dir))
	var held *HeldError
	if !errors.As(err, &held) {
		t.Fatalf("second start: %v", err)
	}
	if held.PID != os.Getpid() || held.Purpose != "test" || !held.Since.Equal(s.Endpoint().StartedAt) {
		t.Errorf("held by %+v", held)
	}

	cmd, out := child(t, "start", dir)
	var lines []string
	for out.Scan() {
		lines = append(lines, out.Text())
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if len(lines) != 2 || lines[1] != strconv.Itoa(os.Getpid()) {
		t.Errorf("second process: %q", lines)
	}
	if err := s.Healthy(t.Context()); err != nil {
		t.Errorf("the first suffered: %v", err)
	}
}

// TestHolderIsKnownAtOnce: patience is for owners that are not on record.
func TestHolderIsKnownAtOnce(t *testing.T) {
	s := start(t, storeIn(t))
	_, err := acquire(wait.Context(t), s.dir, holder{}, time.Hour)
	if _, ok := errors.AsType[*HeldError](err); !ok {
		t.Error(err)
	}
}

// TestShutdownFreesInheritedLocks: a child process that was forked but has not
// called exec yet shares the open lock file.
func TestShutdownFreesInheritedLocks(t *testing.T) {
	dir := storeIn(t)
	s := start(t, dir)
	dup, err := unix.Dup(int(s.lock.file.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(dup) }()
	s.Shutdown()
	start(t, dir)
}

func TestKilledProcessLosesNothingAcked(t *testing.T) {
	dir := storeIn(t)
	cmd, out := child(t, "serve", dir)
	var acked uint64
	for acked < 50 && out.Scan() {
		acked++
	}
	if acked < 50 {
		t.Fatalf("the child ended after %d messages", acked)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for out.Scan() { // acks that were printed before it died
		acked++
	}
	_ = cmd.Wait()
	if _, err := os.Stat(filepath.Join(dir, clientFile)); err != nil {
		t.Fatalf("the killed process should leave client.json: %v", err)
	}
	// It need not wait to know that nobody is there.
	if _, err := find(wait.Context(t), "", dir, time.Hour); !errors.Is(err, ErrNotRunning) {
		t.Errorf("found a killed server: %v", err)
	}

	s := start(t, dir)
	stream, err := connect(t, s.Endpoint()).Stream(t.Context(), "S")
	if err != nil {
		t.Fatal(err)
	}
	for seq := uint64(1); seq <= acked; seq++ {
		m, err := stream.GetMsg(t.Context(), seq)
		if err != nil {
			t.Fatalf("message %d of %d acked: %v", seq, acked, err)
		}
		if string(m.Data) != strconv.FormatUint(seq, 10) {
			t.Fatalf("message %d holds %q", seq, m.Data)
		}
	}
}

func TestStartIsHonestAboutFailure(t *testing.T) {
	dir := storeIn(t)
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Start(canceled, config(dir)); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	for name, cfg := range map[string]Config{
		"dir is empty":      {Logger: discard()},
		"logger is missing": {Dir: dir},
		"negative":          {Dir: dir, Logger: discard(), MaxStore: -1},
		"purpose is longer": {Dir: dir, Logger: discard(), Purpose: strings.Repeat("x", 121)},
	} {
		if _, err := Start(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("want %q, got %v", name, err)
		}
	}
	start(t, dir) // no failure left anything behind
}

func TestTokenStaysOutOfLogs(t *testing.T) {
	var buf testoutput.Output // some goroutines of the server outlive Shutdown for a moment
	cfg := config(storeIn(t))
	cfg.Logger = slog.New(slog.NewTextHandler(&buf, &slog.HandlerOptions{Level: slog.LevelDebug}))
	s, err := Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	connect(t, s.Endpoint())
	cfg.Logger.Info("endpoint", "text", s.Endpoint().String(), "endpoint", s.Endpoint())
	s.Shutdown()
	if !strings.Contains(buf.String(), "nats-server") {
		t.Error("nothing was logged")
	}
	if strings.Contains(buf.String(), s.Token()) || strings.Contains(fmt.Sprint(s.Endpoint()), s.Token()) {
		t.Error("the token was logged")
	}
}

func BenchmarkStart(b *testing.B) {
	dir := filepath.Join(b.TempDir(), "nats")
	for b.Loop() {
		s, err := Start(b.Context(), config(dir))
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		s.Shutdown()
		b.StartTimer()
	}
}

func BenchmarkFind(b *testing.B) {
	dir := filepath.Join(b.TempDir(), "nats")
	s, err := Start(b.Context(), config(dir))
	if err != nil {
		b.Fatal(err)
	}
	defer s.Shutdown()
	for b.Loop() {
		if _, err := find(b.Context(), "", dir, time.Second); err != nil {
			b.Fatal(err)
		}
	}
}
