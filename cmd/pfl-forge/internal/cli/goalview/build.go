package goalview

import (
	"cmp"
	"context"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/costs"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/document"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/pending"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/target"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
	model "github.com/pfl-forge/pfl-forge/document"
)

// Read returns the goal that an intent with criteria is, with what its iterations used.
func Read(ctx context.Context, t *target.Target, v *forge.View) (*Document, error) {
	attempts, err := costs.Attempts(ctx, t, v.Intent.ID)
	if err != nil {
		return nil, err
	}
	d := of(v, attempts)
	return &d, nil
}

// of returns the document of a goal. Its attempts say what the iterations used.
func of(v *forge.View, attempts []costs.AttemptDetail) Document {
	s := &v.Summary
	g := v.Goal
	options := OptionsOf(cmp.Or(v.Intent.Goal, &forge.GoalOptions{}))
	d := Document{
		ID: v.Intent.ID, Title: v.Intent.Title, Status: StatusOf(s), IntentStatus: s.Status,
		Waiting: s.Waiting, Reason: s.Reason, Activity: s.Activity,
		GoalCounts: model.GoalCounts{Iteration: g.Iteration, Used: g.Used, MaxIterations: cmp.Or(g.Most, options.MaxIterations)},
		Judgment:   judgmentOf(g.FinalJudgment()), Iterations: []iteration{}, Knowledge: []knowledge{}, Applied: append([]string{}, g.Applied...),
		Files: Files{HistoryPath: options.HistoryFile, KnowledgePath: options.KnowledgeFile, RawLogDir: rawLogs(options, v.Intent.ID)},
		Error: g.Error, Tokens: render.Fresh(&s.Usage), CachedTokens: render.Cached(&s.Usage), CostUSD: s.Usage.CostUSD,
	}
	d.Criteria = document.CriteriaOf(g)
	for _, e := range d.Criteria {
		if e.Met {
			d.Met++
		}
	}
	used := usedBy(g.Iterations, attempts)
	for i := range g.Iterations {
		it := iterationOf(&g.Iterations[i])
		it.CostUSD = used[i].CostUSD
		it.Tokens, it.CachedTokens = cmp.Or(render.Fresh(&used[i]), it.Tokens), render.Cached(&used[i])
		d.Iterations = append(d.Iterations, it)
	}
	for i := range g.Knowledge {
		k := &g.Knowledge[i]
		d.Knowledge = append(d.Knowledge, knowledge{k.ID, k.Type, k.Category, k.Content, k.ExampleFile, k.Confidence, k.AppliedCount})
	}
	for i := range v.Tasks {
		d.Commit = cmp.Or(v.Tasks[i].Commit, d.Commit)
	}
	if pending.Waits(s) {
		d.Commands = pending.Commands(s)
	}
	return d
}

// judgmentOf returns a judgment as a document; nil for none.
func judgmentOf(j *forge.Judgment) *judgment {
	if j == nil {
		return nil
	}
	return &judgment{Head: j.Head, Complete: j.Complete, Criteria: model.ClaimsOf(j.Claims), Reason: j.Reason, NextAction: j.NextAction}
}

// iterationOf returns an iteration as a document, without its costs.
func iterationOf(i *forge.Iteration) iteration {
	d := iteration{Number: i.Number, Head: i.Head, Judged: i.Judgment != nil, Judgment: judgmentOf(i.Judgment)}
	if i.Judgment != nil {
		for n := range i.Judgment.Claims {
			if i.Judgment.Claims[n].Counts() {
				d.Met++
			}
		}
	}
	s := i.Summary
	if s == nil {
		return d
	}
	d.Approach, d.Result, d.Reason, d.Artifacts = s.Approach, s.Result, s.Reason, s.Artifacts
	d.Tools, d.Files, d.ErrorType, d.StrategyTags = s.Metadata.ToolsUsed, s.Metadata.FilesModified, s.Metadata.ErrorType, s.Metadata.StrategyTags
	d.Tokens = s.Metadata.TokensUsed
	if !s.At.IsZero() {
		d.At = &s.At
	}
	if n := s.Next; n != nil {
		d.Next = &nextAction{n.SuggestedAction, n.Blockers, n.PartialProgress, n.PendingItems}
	}
	return d
}

// next returns the work that an iteration left: in the judge's words, or else in its own.
func (i *iteration) next() string {
	switch {
	case i.Judgment != nil && i.Judgment.Complete:
		return ""
	case i.Judgment != nil && i.Judgment.NextAction != "":
		return i.Judgment.NextAction
	case i.Next != nil:
		return i.Next.SuggestedAction
	}
	return ""
}

// usedBy returns the usage of each iteration: that of its executions, and of the attempts
// that followed from them.
func usedBy(iterations []forge.Iteration, attempts []costs.AttemptDetail) []forge.Usage {
	used := make([]forge.Usage, len(iterations))
	at := -1
	for i := range attempts {
		a := &attempts[i]
		if a.Task == "" {
			continue // of the whole goal, such as intake
		}
		if a.Step == forge.StepExecute {
			for at+1 < len(iterations) && (at < 0 || iterations[at].Attempt < a.Attempt) {
				at++
			}
		}
		if at >= 0 {
			used[at] = used[at].Add(a.Usage())
		}
	}
	return used
}
