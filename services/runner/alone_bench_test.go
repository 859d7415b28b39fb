package runner_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/natsd"
	"github.com/pfl-forge/pfl-forge/service"
	"github.com/pfl-forge/pfl-forge/services/runner"
)

// The environment of a process that does nothing but start a runner: at the server
// with a URL and a token, or at a server of its own over the store in a directory.
const (
	aloneURL   = "RUNNER_TEST_ALONE_URL"
	aloneToken = "RUNNER_TEST_ALONE_TOKEN"
	aloneDir   = "RUNNER_TEST_ALONE_DIR"
)

// TestMain runs the tests, or startAlone in a process that measureAlone has started.
func TestMain(m *testing.M) {
	url, dir := os.Getenv(aloneURL), os.Getenv(aloneDir)
	if url == "" && dir == "" {
		wait.Beside()
		os.Exit(m.Run())
	}
	if err := startAlone(url, os.Getenv(aloneToken), dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// footprint is the memory of such a process once its runner is ready, in bytes.
type footprint struct {
	Heap int64 // what is in use
	Peak int64 // the most that was resident
}

// startAlone starts a runner as its program does, and writes the footprint to standard output.
func startAlone(url, token, dir string) error {
	service.CollectSeldom(os.Getenv)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	log := slog.New(slog.DiscardHandler)
	if dir != "" {
		s, err := natsd.Start(ctx, natsd.Config{Dir: dir, Purpose: "bench", Logger: log})
		if err != nil {
			return err
		}
		defer s.Shutdown()
		url, token = s.URL(), s.Token()
	}
	conn, err := bus.Connect(ctx, bus.Config{URL: url, Token: token, Name: "alone", Replicas: 1, Logger: log})
	if err != nil {
		return err
	}
	defer conn.Close()
	var told error
	err = runner.Run(ctx, runner.Config{Bus: conn, Log: log, Ready: func() {
		told = tellFootprint()
		cancel()
	}})
	return errors.Join(err, told)
}

// tellFootprint writes that of this process to standard output.
func tellFootprint() error {
	status, err := os.ReadFile("/proc/self/status") // before the collection, which needs memory itself
	if err != nil {
		return err
	}
	// Not that of getrusage, which begins with the memory of the process that started this one.
	_, peak, _ := strings.Cut(string(status), "VmHWM:")
	var kib int64
	if _, err := fmt.Sscan(peak, &kib); err != nil {
		return err
	}
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return json.NewEncoder(os.Stdout).Encode(footprint{int64(m.HeapAlloc), kib << 10})
}

// measureAlone reports the memory of a process of its own that starts a runner,
// with the environment given, as name-heap-MB and name-peak-MB.
func measureAlone(b *testing.B, name string, env ...string) {
	b.Helper()
	exe, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.CommandContext(b.Context(), exe)
	cmd.Env, cmd.Stderr = append(os.Environ(), env...), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		b.Fatal(err)
	}
	var f footprint
	if err := json.Unmarshal(out, &f); err != nil {
		b.Fatalf("%s: %v", out, err)
	}
	b.ReportMetric(float64(f.Heap)/1e6, name+"-heap-MB")
	b.ReportMetric(float64(f.Peak)/1e6, name+"-peak-MB")
}
