// Package repotest opens repositories for tests of workers.
//
// Tests of the analyzer, implementer, reviewer and reflector use it to have a jobs.Repository
// over a real git repository, with the recipe agent or a real CLI whose model follows a
// scenario. Each is closed when the test ends, and its state directory is gone.
package repotest

import (
	"log/slog"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/process"
	"github.com/pfl-forge/pfl-forge/agent/recipe"
	"github.com/pfl-forge/pfl-forge/bus/objects"
	"github.com/pfl-forge/pfl-forge/internal/demand"
	"github.com/pfl-forge/pfl-forge/internal/telemetry"
	"github.com/pfl-forge/pfl-forge/jobs"
)

// Project is the id of every repository that this package opens.
const Project forge.ProjectID = "shop"

// Local opens a person's repository, with the recipe agent and others.
func Local(t testing.TB, path string, others ...agent.Agent) *jobs.Set {
	t.Helper()
	return Open(t, t.TempDir(), jobs.Source{Project: Project, Path: path}, others...)
}

// Clone opens a clone of an origin, as one more replica.
func Clone(t testing.TB, url string, others ...agent.Agent) *jobs.Set {
	t.Helper()
	return Open(t, t.TempDir(), jobs.Source{Project: Project, URL: url}, others...)
}

// Measured opens a repository with metrics and traces.
func Measured(t testing.TB, src jobs.Source, metrics *telemetry.Recorder, others ...agent.Agent) *jobs.Set {
	t.Helper()
	return openHost(t, jobs.Host{StateDir: t.TempDir(), Metrics: metrics}, src, others...)
}

// Open opens a repository with a given state directory. It is closed when the test ends.
func Open(t testing.TB, stateDir string, src jobs.Source, others ...agent.Agent) *jobs.Set {
	t.Helper()
	return openHost(t, jobs.Host{StateDir: stateDir}, src, others...)
}

// openHost opens one repository on a host, which ends with the test. The recipes' agent is
// there in any case.
func openHost(t testing.TB, host jobs.Host, src jobs.Source, others ...agent.Agent) *jobs.Set {
	t.Helper()
	host.Owner = process.NewOwner(host.StateDir)
	host.Agents = append([]agent.Agent{recipe.New(host.Owner)}, others...)
	host.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	set, err := jobs.OpenSet(t.Context(), host, []jobs.Source{src})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := set.Close(); err != nil {
			t.Error(err)
		}
	})
	return set
}

// Unconfined is Local, with commands that reach files outside of their
// checkout, such as a counter of their runs.
func Unconfined(t testing.TB, path string, others ...agent.Agent) *jobs.Set {
	t.Helper()
	return openHost(t, jobs.Host{StateDir: t.TempDir(), Sandbox: demand.Unconfined}, jobs.Source{Project: Project, Path: path}, others...)
}

// Replica is Clone, and hands sessions on to other replicas.
func Replica(t testing.TB, url string, objects *objects.Store, others ...agent.Agent) *jobs.Set {
	t.Helper()
	return openHost(t, jobs.Host{StateDir: t.TempDir(), Objects: objects}, jobs.Source{Project: Project, URL: url}, others...)
}
