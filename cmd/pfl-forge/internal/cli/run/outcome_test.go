package run

import (
	"errors"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/local"
	"github.com/pfl-forge/pfl-forge/forgedir"
)

func TestOutcome(t *testing.T) {
	done := forge.Summary{Status: forge.StatusDone}
	asks := forge.Summary{Status: forge.StatusProposed, Waiting: forge.WaitingClarification}
	blocked := forge.Summary{Status: forge.StatusBlocked, Waiting: forge.WaitingFailed}
	cancelled := forge.Summary{Status: forge.StatusCancelled}
	for name, test := range map[string]struct {
		outcome local.Outcome
		want    kit.Exit
	}{
		"nothing":        {local.Outcome{}, kit.ExitOK},
		"all done":       {local.Outcome{Intents: []forge.Summary{done, cancelled}}, kit.ExitOK},
		"waits":          {local.Outcome{Intents: []forge.Summary{done, asks}}, kit.ExitWaiting},
		"failed":         {local.Outcome{Intents: []forge.Summary{asks, blocked, done}}, kit.ExitFailed},
		"refused a file": {local.Outcome{Intents: []forge.Summary{done}, Problems: []forgedir.Problem{{Path: "x"}}}, kit.ExitWaiting},
		"interrupted":    {local.Outcome{Intents: []forge.Summary{blocked}, Interrupted: true}, kit.ExitInterrupted},
	} {
		got := kit.ExitOK
		if err := Outcome(&test.outcome); err != nil {
			var ok bool
			if got, ok = errors.AsType[kit.Exit](err); !ok {
				t.Errorf("%s: says %q", name, err)
			}
		}
		if got != test.want {
			t.Errorf("%s: exit code %d, want %d", name, got, test.want)
		}
	}
}
