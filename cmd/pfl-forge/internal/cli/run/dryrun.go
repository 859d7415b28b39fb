package run

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/pending"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/target"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/local"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
	"github.com/pfl-forge/pfl-forge/forgedir"
)

// plan lists the work of a run that was not begun, as programs read it.
// Lists are never null. Import and Work are separate because a draft has no intent yet.
type plan struct {
	Import   []forge.IntentID   `json:"import"             yaml:"import"`  // drafts
	Work     []forge.IntentID   `json:"work"               yaml:"work"`    // intents that can go on
	Waiting  []forge.IntentID   `json:"waiting"            yaml:"waiting"` // intents that wait for a person
	Problems []forgedir.Problem `json:"problems,omitempty" yaml:"problems,omitempty"`
}

// dryRun prints the plan of a run. That drafts would be refused is an error. While a run goes
// on it reads the drafts itself, and they are left out here: they may be intents already.
func dryRun(ctx context.Context, a *kit.App, repo *local.Repository, base *local.Base, format render.Format) error {
	t, err := target.Reader(ctx, a)
	if err != nil {
		return err
	}
	defer t.Close()
	all, err := t.Summaries(ctx)
	if err != nil {
		return err
	}
	known := map[forge.IntentID][]forge.IntentID{}
	p := plan{Import: []forge.IntentID{}, Work: []forge.IntentID{}, Waiting: []forge.IntentID{}}
	for i := range all {
		s := &all[i]
		known[s.Key.Intent] = nil
		switch {
		case pending.Waits(s):
			p.Waiting = append(p.Waiting, s.Key.Intent)
		case !s.Status.Ended():
			p.Work = append(p.Work, s.Key.Intent)
		}
	}
	if t.Owner || t.Bus == nil { // otherwise a run reads them
		if err := p.drafts(ctx, repo, base, known); err != nil {
			return err
		}
	}
	if format.Data() {
		err = format.Write(a.Out, p)
	} else {
		printPlan(a, &p)
	}
	if err == nil && len(p.Problems) > 0 {
		err = errors.New("some drafts are refused; fix them (nothing else is held up)")
	}
	return err
}

// drafts adds to the plan the drafts that would be imported, and what is wrong with others. known
// are the intents that exist, so that a draft may depend on them. No draft is moved or changed.
func (p *plan) drafts(ctx context.Context, repo *local.Repository, base *local.Base, known map[forge.IntentID][]forge.IntentID) error {
	inputs, problems, err := repo.ReadDrafts(ctx, known)
	if err != nil {
		return err
	}
	inputs, wrong := local.CheckAllNames(base.Config, inputs)
	p.Problems = slices.Concat(problems, wrong)
	for i := range inputs {
		p.Import = append(p.Import, inputs[i].Intent)
	}
	return nil
}

// printPlan prints a plan, an intent a line. A line is the kind and the id,
// with a tab between them, on standard output; problems go to standard error.
func printPlan(a *kit.App, p *plan) {
	for _, list := range []struct {
		what string
		ids  []forge.IntentID
	}{{"import", p.Import}, {"work", p.Work}, {"waiting", p.Waiting}} {
		for _, id := range list.ids {
			fmt.Fprintf(a.Out, "%s\t%s\n", list.what, id)
		}
	}
	for i := range p.Problems {
		a.Say("%s", kit.Safe(p.Problems[i].Error()))
	}
	if len(p.Import)+len(p.Work)+len(p.Problems) == 0 {
		a.Say("nothing to do")
	}
}
