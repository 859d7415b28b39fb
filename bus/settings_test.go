package bus_test

import (
	"testing"

	"github.com/nats-io/nats.go"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/internal/wire"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// TestSettingsAreToldToThoseWhoReadThem: a worker leaves the settings of a
// policy out of its results until a runner has said that all runners read them,
// and from when one says so no more; also when it sends the same result again.
// An older runner could not go on with the intent otherwise.
func TestSettingsAreToldToThoseWhoReadThem(t *testing.T) {
	t.Parallel()
	s := bustest.StartServer(t)
	worker := s.Connect(t)
	nc, err := nats.Connect(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	// The runner's answers, in their order: whether it says that all read
	// settings, and whether it has decided.
	answers := []struct{ reads, decided bool }{{false, true}, {true, true}, {true, true}, {false, false}, {false, true}, {false, true}}
	told := make(chan int, len(answers))
	n := 0
	if _, err := nc.Subscribe("forge.result.>", func(m *nats.Msg) {
		r, err := wire.Results.Unmarshal(m.Data)
		if err != nil {
			t.Error(err)
		}
		a := nats.NewMsg(m.Reply)
		if answers[n].reads {
			a.Header.Set(wire.HeaderSettings, "true")
		}
		if forge.As[*forge.Started](r.Output) != nil { // it asks what runners read
			a.Header.Set(wire.HeaderDecided, "true")
			if err := nc.PublishMsg(a); err != nil {
				t.Error(err)
			}
			return
		}
		settings := 0
		if a := forge.As[*forge.Analysis](r.Output); a != nil && a.Policy != nil {
			settings = len(a.Policy.Settings)
		}
		if r.Policy != nil {
			settings += len(r.Policy.Settings)
		}
		told <- settings
		if a.Header.Set(wire.HeaderAgain, "1ms"); answers[n].decided {
			a.Header.Set(wire.HeaderDecided, "true")
		}
		n++
		if err := nc.PublishMsg(a); err != nil {
			t.Error(err)
		}
	}); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	policy := &forge.Policy{}
	policy.Settings = []forge.Setting{{Name: "verify", Value: "make", By: "repository"}}
	publish := func(step forge.Step, output forge.Output, of *forge.Policy) {
		t.Helper()
		r := forge.Result{
			To: forge.Key{Project: "shop", Intent: "fix-login"}, Attempt: forge.Attempt{Step: step, Number: 1, Claim: 1}, Output: output, Policy: of,
		}
		if err := worker.Results.Publish(wait.Context(t), r); err != nil {
			t.Fatal(err)
		}
	}
	analysis := &forge.Analysis{Policy: policy}
	for range 3 {
		publish(forge.StepAnalyze, analysis, nil)
	}
	publish(forge.StepAnalyze, analysis, nil) // told, not decided by a runner that says nothing of settings, and sent again
	publish(forge.StepAudit, &forge.Audit{}, policy)
	for i, want := range []int{0, 1, 1, 1, 0, 0} {
		if got := wait.For(t, told); got != want {
			t.Errorf("result %d tells %d settings, want %d", i, got, want)
		}
	}
	if len(policy.Settings) != 1 {
		t.Error("the worker's own policy was altered")
	}
}
