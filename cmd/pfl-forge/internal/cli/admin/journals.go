package admin

import (
	"context"
	"errors"
	"fmt"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/journal/chain"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/target"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
)

// checkJournals checks the chains of the project's journal and of the intents that have not ended: its
// cost depends on what is under way, not on what ever was. audit-log verify checks all.
func checkJournals(ctx context.Context, t *target.Target) []finding {
	all, err := t.Summaries(ctx)
	if err != nil {
		return []finding{{"journals", warning, err.Error(), ""}}
	}
	keys := []forge.Key{t.Key("")}
	for i := range all {
		if !all[i].Status.Ended() {
			keys = append(keys, all[i].Key)
		}
	}
	var found []finding
	for _, key := range keys {
		_, head, err := t.Bus.Journal.Load(ctx, key)
		if _, newer := errors.AsType[*bus.UnknownError](err); err != nil && !newer {
			found = append(found, finding{"journals", warning, err.Error(), ""})
		}
		if head.Broken != nil {
			found = append(found, brokenJournal(key, head.Broken))
		}
	}
	if len(found) == 0 {
		found = []finding{{"journals", healthy, render.Count(len(keys), "journal") + " under way, whole", ""}}
	}
	return found
}

// brokenJournal returns the finding about a journal whose chain is broken.
func brokenJournal(key forge.Key, at *chain.Break) finding {
	verify := "pfl-forge audit-log verify"
	if key.Intent != "" {
		verify += " " + string(key.Intent)
	}
	return finding{"journals", broken, fmt.Sprintf("%s: %s", key, at.Error()), "nothing is decided on it any more; see " + verify}
}
