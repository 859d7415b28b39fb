package report

import "github.com/pfl-forge/pfl-forge"

// Abridge returns the records of an intent without what a reader is not told: the commands and all else that
// followed from them, the accounts, references and signatures of senders, which are for auditors, the workers'
// signed statements, and the settings of the repository, in which a command may hold a secret. That there is an
// account, or that settings were read, is told. What is left is for people to read, and is not folded.
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

// someAccount stands for every account at a gateway.
const someAccount = "-"

// abridged returns an event without what a reader is not told. What is changed is copied before.
func abridged(ev forge.Event) forge.Event {
	if ev.Account != "" {
		ev.Account = someAccount
	}
	ev.Signature, ev.Ref, ev.Anchor = "", "", ""
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
		r := *out
		r.Statement = ""
		told.Output = &r
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
