package reflector_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/decide"
	"github.com/pfl-forge/pfl-forge/bus/journal/chain"
	"github.com/pfl-forge/pfl-forge/git/gittest"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/jobs/repotest"
	"github.com/pfl-forge/pfl-forge/service"
	"github.com/pfl-forge/pfl-forge/services/reflector"
)

func TestReflectWithoutAModel(t *testing.T) {
	b := bustest.Start(t)
	key := forge.Key{Project: "shop", Intent: "fix"}
	cmd := forge.Command{
		BudgetUSD: 5,
		To:        key, Attempt: forge.Attempt{Step: forge.StepReflect, Number: 1, Claim: 1},
		Input: &forge.ReflectInput{
			History:      &forge.History{IntentID: "fix"},
			Observations: []forge.Observation{{ID: "a", Content: "new"}, {ID: "b", Content: "newer"}},
		},
	}
	if _, err := b.Journal.Append(t.Context(), key.ProjectKey(), chain.Head{}, forge.Record{
		Effects: forge.Effects{Commands: []forge.Command{cmd}},
		Summary: forge.Summary{Key: key.ProjectKey(), RunSummary: forge.RunSummary{Open: []forge.Attempt{cmd.Attempt}}},
	}); err != nil {
		t.Fatal(err)
	}
	if err := b.Effects.Dispatch(t.Context(), key.ProjectKey(), forge.Effects{Commands: []forge.Command{cmd}}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	r := reflector.New(repotest.Local(t, gittest.New(t, map[string]string{"pfl-forge.yaml": "agent: recipe\n"}).Dir))
	done := make(chan error, 1)
	go func() {
		done <- r.Run(ctx, &service.Worker{
			Bus: b, Replica: "w1", Log: slog.New(slog.DiscardHandler), Handlers: r.Handlers(), Parallel: 1,
		})
	}()
	results := make(chan forge.Result, 1)
	go b.Events.Consume(ctx, decide.Config{}, func(_ context.Context, d *decide.Delivery) error {
		results <- *forge.As[*forge.Result](d.Event.Message)
		return nil
	})
	got := wait.For(t, results)
	if diff := cmp.Diff(&forge.Reflection{Read: []string{"a", "b"}}, forge.As[*forge.Reflection](got.Output)); diff != "" || got.Failure() != nil {
		t.Errorf("%+v\n%s", got, diff)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
