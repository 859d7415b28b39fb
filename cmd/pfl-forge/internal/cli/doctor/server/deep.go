package server

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/journal"
	"github.com/pfl-forge/pfl-forge/bus/journal/chain"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/doctor/diagnosis"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/target"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
	"github.com/pfl-forge/pfl-forge/internal/rules"
)

// checkStore compares the store of a repository with what its files show of it.
// A store that has less than .forge shows is broken, since no run decides
// anything on it (ADR-0079). Of a whole one there is no finding.
func checkStore(ctx context.Context, t *target.Target) []diagnosis.Finding {
	lost, err := t.Repo.FindLost(ctx, t.Bus)
	if err != nil {
		return []diagnosis.Finding{diagnosis.New("store", diagnosis.Warning, err.Error(), "")}
	}
	if lost != nil {
		return []diagnosis.Finding{diagnosis.New("store", diagnosis.Broken, kit.Safe(lost.What()), kit.Safe(lost.Remedy()))}
	}
	return nil
}

// checkHistory reads every journal of the project, and compares them with the
// base branch of the repository: what both say was merged has to be the same.
//
// Its findings about the branch are warnings: a trailer on a commit is written by whoever could
// push, so that it proves nothing by itself (ADR-0073), and a clone may be older than the journals.
func checkHistory(ctx context.Context, a *kit.App, t *target.Target) []diagnosis.Finding {
	found := checkChains(ctx, t)
	if t.Repo == nil {
		return append(found, diagnosis.New("history", diagnosis.Warning, "there is no repository here to compare with", "call it in a clone, with --project"))
	}
	ahead, gone, err := t.Repo.Compare(ctx, t.Bus, t.Project)
	if err != nil {
		return append(found, diagnosis.New("history", diagnosis.Warning, err.Error(), ""))
	}
	before := len(found)
	for i := range ahead {
		x := &ahead[i]
		what := fmt.Sprintf("the base branch has %s, which the journal of %s does not know", x.Merged, x.Intent)
		hint := a.Pasted(fmt.Sprintf("pfl-forge show %s, then pfl-forge cancel %s, or leave it to be made again", x.Intent, x.Intent))
		if x.Unknown {
			what = fmt.Sprintf("the base branch has %s, and there is no journal of %s", x.Merged, x.Intent)
			hint = "it was merged before the journals began, or they were lost"
		}
		found = append(found, diagnosis.New("history", diagnosis.Warning, what, hint))
	}
	for _, id := range slices.Sorted(maps.Keys(gone)) {
		found = append(found, diagnosis.New(
			"history", diagnosis.Warning, fmt.Sprintf("the base branch no longer has what was merged of %s: %s", id, gone[id]),
			"fetch, if the branch here is an older one; otherwise somebody has rewritten it",
		))
	}
	if len(found) == before {
		found = append(found, diagnosis.New("history", diagnosis.Healthy, "journals and base branch agree on what was merged", ""))
	}
	return found
}

// checkChains checks the chains of all journals of the project, and says which
// versions of the rules have decided in them.
//
// Chains that hold are one finding, with the count; of each that breaks there is one that names
// the journal. The versions are told because a record is folded by the rules that decided it
// (ADR-0086): an old version that is still in use cannot be removed from the program.
func checkChains(ctx context.Context, t *target.Target) (found []diagnosis.Finding) {
	audit := chain.NewAudit(func(subject string) bool {
		key, err := subjects.ParseJournal(subject)
		return err == nil && key.Project == t.Project
	})
	versions := map[rules.Version]bool{}
	err := t.Bus.Journal.Each(ctx, forge.Key{Project: t.Project}, func(e *journal.Entry) error {
		audit.Add(&e.Link)
		if e.Record != nil {
			versions[rules.Of(e.Record)] = true
		}
		return nil
	})
	if err != nil {
		return []diagnosis.Finding{diagnosis.New("all journals", diagnosis.Warning, err.Error(), "")}
	}
	hint := "see pfl-forge audit-log verify"
	if t.Repo != nil && !t.Remote {
		hint = "see pfl-forge audit-log verify; put a backup in place, or see pfl-forge recover --dry-run"
	}
	for _, f := range audit.Findings() {
		if f.Breaks() {
			found = append(found, diagnosis.New("all journals", diagnosis.Broken, fmt.Sprintf("%s: %s", f.Journal, f.Detail), hint))
		}
	}
	if len(found) > 0 {
		return found
	}
	journals, records := audit.Count()
	what := fmt.Sprintf("%s with %s, whole", render.Count(journals, "journal"), render.Count(records, "record"))
	if len(versions) > 0 {
		what += "; by rules of version " + strings.Trim(strings.ReplaceAll(fmt.Sprint(slices.Sorted(maps.Keys(versions))), " ", ", "), "[]")
	}
	return []diagnosis.Finding{diagnosis.New("all journals", diagnosis.Healthy, what, "")}
}
