package cli

import (
	"cmp"
	"fmt"

	"github.com/pfl-forge/pfl-forge"
)

// notGoal is the error for an intent without criteria.
func notGoal(id forge.IntentID) error {
	return fmt.Errorf("%s is no goal, it has no criteria; `pfl-forge show %s` shows it, `pfl-forge goal list` lists the goals", id, id)
}

// goalOf returns a goal as it is. Attempts say what its iterations used; nil if that is not known.
func goalOf(v *forge.View, attempts []attemptDetail) goalDoc {
	s := &v.Summary
	g := v.Goal
	options := goalOptionsOf(cmp.Or(v.Intent.Goal, &forge.GoalOptions{}))
	d := goalDoc{
		ID: v.Intent.ID, Title: v.Intent.Title, Status: goalStatus(s), IntentStatus: s.Status,
		Waiting: s.Waiting, Reason: s.Reason, Activity: s.Activity,
		Iteration: g.Iteration, Used: g.Used, MaxIterations: cmp.Or(g.Most, options.MaxIterations),
		Judgment: judgmentOf(g.FinalJudgment()), Iterations: []iteration{}, Knowledge: []knowledge{}, Applied: append([]string{}, g.Applied...),
		HistoryPath: options.HistoryFile, KnowledgePath: options.KnowledgeFile, RawLogDir: rawLogs(options, v.Intent.ID),
		Error: g.Error, Tokens: s.Usage.InputTokens + s.Usage.OutputTokens, CostUSD: s.Usage.CostUSD,
	}
	d.Criteria = criteriaOf(g)
	for _, e := range d.Criteria {
		if e.Met {
			d.Met++
		}
	}
	used := usedBy(g.Iterations, attempts)
	for i := range g.Iterations {
		it := iterationOf(&g.Iterations[i])
		it.CostUSD = used[i].CostUSD
		it.Tokens = cmp.Or(used[i].InputTokens+used[i].OutputTokens, it.Tokens)
		d.Iterations = append(d.Iterations, it)
	}
	for i := range g.Knowledge {
		k := &g.Knowledge[i]
		d.Knowledge = append(d.Knowledge, knowledge{k.ID, k.Type, k.Category, k.Content, k.ExampleFile, k.Confidence, k.AppliedCount})
	}
	for i := range v.Tasks {
		d.Commit = cmp.Or(v.Tasks[i].Commit, d.Commit)
	}
	if s.Waiting != "" {
		d.Commands = commands(s)
	}
	return d
}

// criteriaOf returns every criterion, and what the last judgment says of it.
func criteriaOf(g *forge.GoalView) []evaluation {
	list := []evaluation{}
	last := g.FinalJudgment()
	for i, text := range g.Text {
		e := evaluation{Criterion: text}
		if last != nil && i < len(last.Evaluations) && last.Evaluations[i].Criterion == text {
			e = evaluation(last.Evaluations[i])
		}
		list = append(list, e)
	}
	return list
}

func judgmentOf(j *forge.Judgment) *judgment {
	if j == nil {
		return nil
	}
	d := &judgment{Head: j.Head, Complete: j.Complete, Evaluations: []evaluation{}, Reason: j.Reason, NextAction: j.NextAction}
	for _, e := range j.Evaluations {
		d.Evaluations = append(d.Evaluations, evaluation(e))
	}
	return d
}

func iterationOf(i *forge.Iteration) iteration {
	d := iteration{Number: i.Number, Head: i.Head, Judged: i.Judgment != nil, Judgment: judgmentOf(i.Judgment)}
	if i.Judgment != nil {
		for _, e := range i.Judgment.Evaluations {
			if e.Met {
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

// next says what an iteration left to do: in the judge's words, or else in its own.
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

// usedBy adds up what the attempts of each iteration used: its executions, and what
// followed from them.
func usedBy(iterations []forge.Iteration, attempts []attemptDetail) []forge.Usage {
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
			used[at] = used[at].Add(forge.Usage{InputTokens: a.InputTokens, OutputTokens: a.OutputTokens, CostUSD: a.CostUSD})
		}
	}
	return used
}
