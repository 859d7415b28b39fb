package service_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/presence"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/service"
)

// replicas returns who is there.
func replicas(t *testing.T, b *bus.Bus) []presence.Replica {
	t.Helper()
	list, err := b.Presence.Gather(wait.Briefly(t, 300*time.Millisecond), nil)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestServiceAnnouncesItself checks that a service is seen from its start until it drains, and
// not when it was killed.
func TestServiceAnnouncesItself(t *testing.T) {
	t.Parallel()
	s := bustest.StartServer(t)
	b := s.Connect(t)
	r := newRunner(t, b)
	before := time.Now()
	drains := startChild(t, "--server", s.URL(), "--replica=w1", "--drain-timeout=1h", "--project=shop=/repos/shop", "--project=site=/repos/site")
	drains.becomes("ok")
	killed := startChild(t, "--server", s.URL(), "--replica=w2", "--project=shop=/repos/shop")
	killed.becomes("ok")
	var list []presence.Replica
	wait.Until(t, "both are seen", func() bool { list = replicas(t, b); return len(list) == 2 })
	one := list[0]
	if one.Service != "analyzer" || one.ID != "w1" || one.Version != service.Version() || !slices.Equal(one.Projects, []forge.ProjectID{"shop", "site"}) {
		t.Errorf("got %+v", one)
	}
	if one.Started.Before(before) || time.Now().Before(one.Started) {
		t.Errorf("it started at %s", one.Started)
	}
	if err := killed.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	r.start(analyze(1))
	drains.waitFor("start")
	drains.signal(syscall.SIGTERM)
	drains.becomes("draining")
	wait.Until(t, "none is seen", func() bool { return len(replicas(t, b)) == 0 })
}

// TestTellsWhenUnwell: a replica whose state directory is gone says so to those who ask
// which services run, with why and since when, and stops saying so when it is back.
func TestTellsWhenUnwell(t *testing.T) {
	t.Parallel()
	s := bustest.StartServer(t)
	b := s.Connect(t)
	state := t.TempDir()
	before := time.Now().Truncate(time.Second)
	c := startChildThat(t, "goes on", filepath.Join(state, "w1"), "--server", s.URL(), "--replica=w1", "--project=shop=/repos/shop")
	c.becomes("ok")
	var one presence.Replica
	told := func() string {
		if list := replicas(t, b); len(list) == 1 {
			one = list[0]
			return one.Unwell
		}
		return "not there"
	}
	wait.Until(t, "it is well", func() bool { return told() == "" })
	if err := os.Rename(filepath.Join(state, "w1"), filepath.Join(state, "away")); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "it says why it is not", func() bool {
		return strings.Contains(told(), "(FORGE_STATE_DIR) cannot be used: what was in it is gone")
	})
	if one.Since.Before(before) || one.Since.After(time.Now()) {
		t.Errorf("it is unwell since %s", one.Since)
	}
	if err := os.Rename(filepath.Join(state, "away"), filepath.Join(state, "w1")); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "it is well again", func() bool { return told() == "" })
}
