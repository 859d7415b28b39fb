package cli

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/presence"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/internal/testoutput"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/quota"
	"github.com/pfl-forge/pfl-forge/services/runner"
)

// organisation is a nats-server on which services come and go.
type organisation struct {
	t      *testing.T
	server *bustest.Server
}

func newOrganisation(t *testing.T) *organisation {
	t.Helper()
	o := &organisation{t, bustest.StartServer(t)}
	o.server.Connect(t) // makes the streams, as a runner once did
	return o
}

// runner runs a runner until it is stopped, or the test ends.
func (o *organisation) runner() (stop func()) {
	o.t.Helper()
	return o.runnerWith(quota.Limits{})
}

// runnerWith is runner with quotas.
func (o *organisation) runnerWith(limits quota.Limits) (stop func()) {
	o.t.Helper()
	b := o.server.Connect(o.t)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := runner.Run(ctx, runner.Config{Bus: b, Log: slog.New(slog.DiscardHandler), Serve: true, Quotas: limits}); err != nil {
			o.t.Error(err)
		}
	})
	end := func() { cancel(); running.Wait() }
	o.t.Cleanup(end)
	wait.Until(o.t, "the runner answers", func() bool {
		_, err := b.Submissions.Services(wait.Context(o.t), "shop", "ada", true)
		return err == nil
	})
	withdraw := o.announce("runner", "runner-1", "v1")
	return func() { withdraw(); end() }
}

// announce has a replica known until it is stopped, or the test ends.
func (o *organisation) announce(service, id, version string, projects ...forge.ProjectID) (stop func()) {
	o.t.Helper()
	return o.announceAt(time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC), service, id, version, projects...)
}

// announceAt is announce for a replica that started at a time.
func (o *organisation) announceAt(started time.Time, service, id, version string, projects ...forge.ProjectID) (stop func()) {
	o.t.Helper()
	return o.announceReplica(&presence.Replica{
		Service: service, ID: forge.ReplicaID(id), Version: version, Started: started, Projects: projects,
	})
}

// announceReplica is announce for a replica that says more of itself.
func (o *organisation) announceReplica(r *presence.Replica) (stop func()) {
	o.t.Helper()
	stop, err := o.server.Connect(o.t).Presence.Announce(wait.Context(o.t), *r)
	if err != nil {
		o.t.Fatal(err)
	}
	o.t.Cleanup(stop)
	return stop
}

// forge runs a command about a project.
func (o *organisation) forge(project string, args ...string) (code kit.Exit, out string) {
	o.t.Helper()
	var text testoutput.Output
	return o.forgeTo(&text, project, args...), text.String()
}

func (o *organisation) forgeTo(text *testoutput.Output, project string, args ...string) kit.Exit {
	args = append([]string{"--server", o.server.URL(), "--project", project, "-C", o.t.TempDir()}, args...)
	return kit.Exit(Main(args, strings.NewReader(""), text, text, func(string) string { return "" }))
}

// expect runs a command and compares its exit code and what it says.
func (o *organisation) expect(want kit.Exit, says, project string, args ...string) string {
	o.t.Helper()
	code, out := o.forge(project, args...)
	if code != want || !strings.Contains(out, says) {
		o.t.Errorf("%s: %v: exit code %d, want %d, said %q, want %q", project, args, code, want, out, says)
	}
	return out
}

// expectAll is expect for several commands at the same time.
func (o *organisation) expectAll(want kit.Exit, says, project string, commands ...[]string) {
	o.t.Helper()
	var all sync.WaitGroup
	for _, args := range commands {
		all.Go(func() { o.expect(want, says, project, args...) })
	}
	all.Wait()
}

// A project that nobody has ever served is refused, with the names that it could have been.
func TestProjectThatNobodyServes(t *testing.T) {
	t.Parallel()
	o := newOrganisation(t)
	o.runner()
	o.expectAll(kit.ExitError, `project "shop" is not served here: start the services with --project shop=URL`, "shop",
		[]string{"create", "one", "--title", "One"}, []string{"status"}, []string{"run"},
		[]string{"goal", "run", "--criterion", "c", "Do it"}, []string{"audit"})
	stop := o.announce("analyzer", "a1", "v1", "shop", "bank")
	o.expect(kit.ExitOK, "no intents yet", "shop", "status")
	o.expect(kit.ExitOK, "one\n", "shop", "create", "one", "--title", "One")
	o.expectAll(kit.ExitError, `project "shpo" is not served here, did you mean "shop"?; known are shop: give --project one of these, `+
		`or start the services with --project shpo=URL`, "shpo", []string{"create", "one", "--title", "One"}, []string{"status"}, []string{"run"})
	stop() // and nobody serves it any more, but somebody did
	o.expect(kit.ExitOK, "two\n", "shop", "create", "two", "--title", "Two")
	if out := o.expect(kit.ExitOK, "two", "shop", "status"); strings.Contains(out, "is not served") {
		t.Errorf("said %q", out)
	}
	o.expect(kit.ExitError, `project "shpo" is not served here, did you mean "shop"?; known are shop`, "shpo", "status")
}

// While no runner is up, what is known goes on to be accepted, and everybody says at once
// that there is none.
func TestNoRunnerNow(t *testing.T) {
	t.Parallel()
	o := newOrganisation(t)
	stop := o.runner()
	o.announce("analyzer", "a1", "v1", "shop")
	o.expect(kit.ExitOK, "one\n", "shop", "create", "one", "--title", "One")
	stop()
	o.expect(kit.ExitOK, "two\naccepted; no runner is up: start forge-runner with this server\nnext: pfl-forge",
		"shop", "create", "two", "--title", "Two")
	o.expect(kit.ExitOK, "one accepted; no runner is up: start forge-runner with this server\n", "shop", "pause", "one")
	o.expect(kit.ExitOK, "no runner is up; nothing runs until one starts: start forge-runner with this server\n", "shop", "status")
	o.expect(kit.ExitOK, `"no_runner": true`, "shop", "status", "-o", "json")
	o.expectAll(kit.ExitError, `no runner is up to say whether project "shpo", which has no intents yet, is served, did you mean "shop"?; `+
		`known are shop: start forge-runner with this server, and try again`, "shpo",
		[]string{"create", "one", "--title", "One"}, []string{"status"}, []string{"run"})

	var text testoutput.Output
	ended := make(chan kit.Exit, 1)
	go func() { ended <- o.forgeTo(&text, "shop", "run") }()
	wait.Until(t, "run says that there is no runner", func() bool {
		return strings.Contains(text.String(), "no runner is up, waiting for one: start forge-runner with this server")
	})
	o.runner()
	wait.Until(t, "what was accepted is decided", func() bool {
		_, out := o.forge("shop", "show", "two")
		return !strings.Contains(out, "there is no intent")
	})
	o.expect(kit.ExitOK, "cancelled", "shop", "cancel", "one", "two")
	if code := wait.For(t, ended); code != kit.ExitOK {
		t.Errorf("run ends with %d: %s", code, text.String())
	}
}
