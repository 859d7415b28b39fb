package cli

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/local"
	"github.com/pfl-forge/pfl-forge/workspace"
)

func TestOutcome(t *testing.T) {
	done := forge.Summary{Status: forge.StatusDone}
	asks := forge.Summary{Status: forge.StatusProposed, Waiting: forge.WaitingClarification}
	blocked := forge.Summary{Status: forge.StatusBlocked, Waiting: forge.WaitingFailed}
	cancelled := forge.Summary{Status: forge.StatusCancelled}
	for name, test := range map[string]struct {
		outcome local.Outcome
		want    int
	}{
		"nothing":        {local.Outcome{}, exitOK},
		"all done":       {local.Outcome{Intents: []forge.Summary{done, cancelled}}, exitOK},
		"waits":          {local.Outcome{Intents: []forge.Summary{done, asks}}, exitWaiting},
		"failed":         {local.Outcome{Intents: []forge.Summary{asks, blocked, done}}, exitFailed},
		"refused a file": {local.Outcome{Intents: []forge.Summary{done}, Problems: []workspace.Problem{{Path: "x"}}}, exitWaiting},
		"interrupted":    {local.Outcome{Intents: []forge.Summary{blocked}, Interrupted: true}, exitInterrupted},
	} {
		got := exitOK
		if err := outcome(&test.outcome); err != nil {
			var message string
			if got, message = verdict(t.Context(), nil, err); message != "" {
				t.Errorf("%s: says %q", name, message)
			}
		}
		if got != test.want {
			t.Errorf("%s: exit code %d, want %d", name, got, test.want)
		}
	}
}

func TestVerdict(t *testing.T) {
	root := (&app{}).root()
	code, message := verdict(t.Context(), root, fmt.Errorf("wrapped: %w", usageError{errors.New("x is missing")}))
	if code != exitError || message != "wrapped: x is missing\nsee pfl-forge --help" {
		t.Errorf("usage: %d, %q", code, message)
	}
	code, message = verdict(t.Context(), root, errors.New("the disk is full"))
	if code != exitError || message != "the disk is full" {
		t.Errorf("any error: %d, %q", code, message)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errInterrupted)
	if code, _ = verdict(ctx, root, ctx.Err()); code != exitInterrupted {
		t.Errorf("interrupted: %d", code)
	}
}
