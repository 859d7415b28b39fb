package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/quota"
)

// TestStatusSaysWhyCallsWait: status says how many calls wait for their turn,
// and what has the turn. Without any it says nothing of that.
func TestStatusSaysWhyCallsWait(t *testing.T) {
	t.Parallel()
	for _, one := range []struct {
		bound, intents int
		want           string
	}{
		{2, 2, ""},
		{2, 5, "3 calls wait for their turn: 2 of the project's calls are under way (bound 2)"},
		{0, 3, "1 call waits for its turn: the workers have as many as they take, 2 of them of the project"},
	} {
		o := newOrganisation(t)
		stop := o.runnerWith(quota.Limits{Calls: one.bound})
		o.announce("analyzer", "a", "v1", "shop")
		b := o.server.Connect(t)
		for i := range one.intents {
			id := forge.IntentID(fmt.Sprintf("i-%d", i))
			_, err := b.Submissions.Ask(wait.Context(t), forge.Event{
				ID: string(id), To: forge.Key{Project: "shop", Intent: id}, Actor: "ada",
				Message: &forge.Submit{Intent: forge.Intent{
					ID: id, Project: "shop", Settings: forge.Settings{Title: "x", Body: "do it"}, Source: forge.SourceHuman,
					Origin: forge.Origin{System: "cli", EventID: string(id)},
				}},
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		wait.Until(t, "all are issued", func() bool {
			queues, err := b.Commands.Queues(wait.Context(t))
			n := 0
			for _, q := range queues {
				n += q.Waiting + q.Active
			}
			return err == nil && n == one.intents
		})
		// The turns are given in a moment of their own, after the commands are issued.
		if one.want == "" {
			wait.Until(t, "nothing waits for its turn", func() bool {
				return !strings.Contains(o.expect(kit.ExitOK, "i-0", "shop", "status"), "turn")
			})
		} else {
			wait.Until(t, "status says why", func() bool {
				return strings.Contains(o.expect(kit.ExitOK, "i-0", "shop", "status"), one.want)
			})
			o.expect(kit.ExitOK, `"turns"`, "shop", "status", "-o", "json")
		}
		stop()
	}
}
