// Package repotest opens repositories for tests of workers.
package repotest

import (
	"log/slog"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/process"
	"github.com/pfl-forge/pfl-forge/agent/recipe"
	"github.com/pfl-forge/pfl-forge/repository"
)

// Project is the id of every repository that this package opens.
const Project forge.ProjectID = "shop"

// Local opens a person's repository, with the recipe agent and others.
func Local(t testing.TB, path string, others ...agent.Agent) *repository.Set {
	t.Helper()
	return Open(t, t.TempDir(), repository.Source{Project: Project, Path: path}, others...)
}

// Clone opens a clone of an origin, as one more replica.
func Clone(t testing.TB, url string, others ...agent.Agent) *repository.Set {
	t.Helper()
	return Open(t, t.TempDir(), repository.Source{Project: Project, URL: url}, others...)
}

// Open opens a repository with a given state directory. It is closed when the test ends.
func Open(t testing.TB, stateDir string, src repository.Source, others ...agent.Agent) *repository.Set {
	t.Helper()
	owner := process.NewOwner(stateDir)
	set, err := repository.OpenSet(t.Context(), repository.Host{
		StateDir: stateDir, Owner: owner, Agents: append([]agent.Agent{recipe.New(owner)}, others...),
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}, []repository.Source{src})
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
