package report

import (
	"slices"

	"github.com/pfl-forge/pfl-forge"
)

// A record has more than a reader is told:
//
//	the events          told: who asked for what, and what workers reported, in full
//	  their signature   not told, nor the anchor: they prove a journal to auditors
//	  account and ref   not told: they name the entry of a token, and a request
//	  settings          not told: that they were read is
//	  lines that ran    told, as workers report them: without what these know or recognise as a secret
//	  statements        not told: they are in the commits that they prove
//	the effects         not told: commands hold the settings once more, and what agents are asked
//	the summary         told

// Abridge returns the records of an intent without what a reader is not told: the
// commands and all else that followed from them, the accounts, references and signatures
// of senders, which are for auditors, the workers' signed statements, and the settings of
// the repository, in which a command may hold a secret. That there is an account, or that
// settings were read, is told. What is left is for people to read, and is not folded.
func Abridge(records []forge.Record) []forge.Record {
	list := make([]forge.Record, len(records))
	for i := range records {
		r := &records[i]
		list[i] = forge.Record{Summary: r.Summary, Rules: r.Rules, Events: make([]forge.Event, len(r.Events))}
		for j := range r.Events {
			list[i].Events[j] = abridged(r.Events[j])
		}
	}
	return list
}

// AbridgeView returns the state of an intent without the workers' signed
// statements, which a reader is not told.
func AbridgeView(v forge.View) forge.View {
	v.Reviews = slices.Clone(v.Reviews)
	for i := range v.Reviews {
		v.Reviews[i].Statement = ""
	}
	if v.Goal == nil {
		return v
	}
	goal := *v.Goal
	goal.Iterations = slices.Clone(goal.Iterations)
	for i := range goal.Iterations {
		if j := goal.Iterations[i].Judgment; j != nil {
			told := *j
			told.Statement = ""
			goal.Iterations[i].Judgment = &told
		}
	}
	v.Goal = &goal
	return v
}

// someAccount stands for every account at a gateway.
const someAccount = "-"

// abridged returns an event without what a reader is not told. What is changed is copied
// before: the records belong to the caller, who may keep them for the next reader.
//
// Messages of the other types have nothing of that kind, or are never in the journal of an
// intent: the settings of a repository come with the results of the steps that read it.
func abridged(ev forge.Event) forge.Event {
	if ev.Account != "" {
		ev.Account = someAccount
	}
	ev.Signature, ev.Ref, ev.Anchor = "", "", ""
	if m := forge.As[*forge.MergeEnded](ev.Message); m != nil && m.Result != nil {
		told := *m
		told.Result = merged(m.Result)
		ev.Message = &told
		return ev
	}
	m := forge.As[*forge.Result](ev.Message)
	if m == nil {
		return ev
	}
	told := *m
	if told.Policy != nil {
		told.Policy = &forge.Policy{}
	}
	switch out := m.Output.(type) {
	case *forge.Analysis:
		if out.Policy != nil {
			a := *out
			a.Policy = &forge.Policy{}
			told.Output = &a
		}
	case *forge.Rebase:
		told.Output = rebased(out)
	case *forge.MergeResult:
		told.Output = merged(out)
	case *forge.Review:
		r := *out
		r.Statement = ""
		told.Output = &r
	case *forge.Judgment:
		j := *out
		j.Statement = ""
		told.Output = &j
	default:
	}
	ev.Message = &told
	return ev
}

// rebased returns a change without its signed statement.
func rebased(r *forge.Rebase) *forge.Rebase {
	told := *r
	told.Statement = ""
	return &told
}

// merged returns the outcome of a merge without the signed statements of the changes in it.
func merged(r *forge.MergeResult) *forge.MergeResult {
	told := *r
	if r.Candidate != nil {
		told.Candidate = rebased(r.Candidate)
	}
	told.Batch = slices.Clone(r.Batch)
	for i := range told.Batch {
		told.Batch[i].Statement = ""
	}
	return &told
}
