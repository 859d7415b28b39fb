package bus_test

import (
	"context"
	"testing"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
	"github.com/pfl-forge/pfl-forge/bus/work"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// TestForAnyone: the commands of a step that is for anyone reach a replica of
// any group, or of none, from a consumer that only the runner makes: the account
// of a gateway has no right to make or alter one, nor to take from another.
func TestForAnyone(t *testing.T) {
	t.Parallel()
	s := guardedServer(t)
	runner, err := bus.Connect(t.Context(), bus.Config{
		URL: "nats://runner:RUNNER@" + s.Addr().String(), Replicas: 1, InboxPrefix: "_INBOX_runner", Groups: subjects.Groups{"shop": "large"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer runner.Close()
	gateway := connectAs(t.Context(), t, s, "gateway", "GATEWAY")
	jobs := make(chan forge.Command, 10)
	handle := func(_ context.Context, j *work.Job) error { jobs <- j.Command; return nil }
	consume(t, gateway, work.Config{Step: forge.StepOpenPull, Replica: "gateway-0", Group: "small"}, handle) // before the consumer is there
	if err := runner.Ensure(wait.Context(t)); err != nil {
		t.Fatal(err)
	}
	attempt := forge.Attempt{Step: forge.StepOpenPull, Task: "a-001", Number: 1, Claim: 1}
	c := forge.Command{To: key, Attempt: attempt, Intent: forge.Intent{ID: key.Intent}, Input: &forge.PullInput{Branch: "forge/a-001", Base: "main"}}
	if err := runner.Effects.Dispatch(wait.Context(t), c.To, forge.Effects{Commands: []forge.Command{c}}); err != nil {
		t.Fatal(err)
	}
	if got := wait.For(t, jobs); got.Attempt != attempt {
		t.Errorf("the gateway got %v", got.Attempt)
	}
	if err := gateway.Commands.Ready(wait.Context(t), forge.StepOpenPull, "small", "gateway-0"); err != nil {
		t.Error(err)
	}
	if list, err := gateway.Commands.Unattended(wait.Context(t), forge.StepOpenPull, "gateway-0"); err != nil || len(list) > 0 {
		t.Errorf("left to others: %d, %v", len(list), err)
	}
}
