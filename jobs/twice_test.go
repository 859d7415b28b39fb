package jobs_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/agent/process"
	"github.com/pfl-forge/pfl-forge/git/gittest"
	"github.com/pfl-forge/pfl-forge/internal/testoutput"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/jobs"
	"github.com/pfl-forge/pfl-forge/jobs/repotest"
)

// TestStateDirectoryGivenTwice: a second process with the same state directory
// says that it waits for the end of the first, and then goes on.
func TestStateDirectoryGivenTwice(t *testing.T) {
	t.Parallel()
	state, url := t.TempDir(), gittest.New(t, map[string]string{"a.txt": "a\n"}).Origin()
	var said testoutput.Output
	open := func() (*jobs.Set, error) {
		host := jobs.Host{StateDir: state, Owner: process.NewOwner(state), Log: slog.New(slog.NewTextHandler(&said, nil))}
		return jobs.OpenSet(wait.Context(t), host, []jobs.Source{{Project: repotest.Project, URL: url}})
	}
	first, err := open()
	if err != nil {
		t.Fatal(err)
	}
	second := make(chan *jobs.Set, 1)
	go func() {
		set, err := open()
		if err != nil {
			t.Error(err)
		}
		second <- set
	}()
	wait.Until(t, "the second says that it waits", func() bool { return strings.Contains(said.String(), "another process uses the state directory") })
	<-wait.Briefly(t, 500*time.Millisecond).Done() // more than it takes to open this repository
	if len(second) > 0 {
		t.Error("two processes have one state directory")
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if set := wait.For(t, second); set != nil {
		if err := set.Opened(); err != nil {
			t.Error(err)
		}
		if err := set.Close(); err != nil {
			t.Error(err)
		}
	}
}
