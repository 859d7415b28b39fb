package backends_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge/config"
	"github.com/pfl-forge/pfl-forge/git/gittest"
	"github.com/pfl-forge/pfl-forge/internal/demand"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/jobs/backends"
	"github.com/pfl-forge/pfl-forge/service"
)

func TestEveryConfigurableAgentIsThere(t *testing.T) {
	var names []string
	for _, a := range backends.Host(t.TempDir(), nil, demand.Bounds{}, backends.Environment, slog.New(slog.DiscardHandler)).Agents {
		names = append(names, a.Name())
	}
	if diff := cmp.Diff(config.Agents(), names); diff != "" {
		t.Error(diff)
	}
}

func TestCommandsSeeWhatAnOperatorSets(t *testing.T) {
	t.Setenv("GOCACHE", "/a/cache")
	t.Setenv("SECRET", "x")
	env := backends.Host(t.TempDir(), nil, demand.Bounds{}, backends.Environment, slog.New(slog.DiscardHandler)).Env
	found := false
	for _, kv := range env {
		found = found || kv == "GOCACHE=/a/cache"
		if kv == "SECRET=x" {
			t.Error("a secret is passed on")
		}
	}
	if !found {
		t.Errorf("got %q", env)
	}
}

func TestOpen(t *testing.T) {
	r := gittest.New(t, map[string]string{"a": "a\n"})
	env := &service.Env{Log: slog.New(slog.DiscardHandler), Health: &service.Health{}, Config: &service.Config{
		StateDir: t.TempDir(), Projects: []service.Project{{ID: "shop", URL: r.Origin()}, {ID: "site", URL: r.Origin()}},
	}}
	set, err := backends.Open(t.Context(), env)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := set.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := env.Health.Ready(t.Context()); err != nil {
		t.Error(err)
	}
	soon := wait.Briefly(t, 200*time.Millisecond)
	second := &service.Env{Log: env.Log, Health: &service.Health{}, Config: env.Config}
	if _, err := backends.Open(soon, second); err == nil || second.Health.Ready(t.Context()) == nil {
		t.Errorf("without its state directory it is ready; %v", err)
	}
	for _, p := range env.Config.Projects {
		repo, err := set.Get(p.ID)
		if err != nil {
			t.Fatal(err)
		}
		if tip, err := repo.Tip(t.Context()); tip != r.Head("main") || err != nil {
			t.Errorf("%s: %s, %v", p.ID, tip, err)
		}
	}
}
