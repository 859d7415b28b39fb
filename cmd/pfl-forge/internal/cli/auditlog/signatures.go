package auditlog

import (
	"errors"
	"fmt"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/journal"
	"github.com/pfl-forge/pfl-forge/bus/journal/chain"
	"github.com/pfl-forge/pfl-forge/bus/signed"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
	"github.com/pfl-forge/pfl-forge/services/runner/audit"
)

// The kinds of findings about signatures, beside those of chains.
const (
	// unsigned events have no signature: their senders had no keys, or the runner asked for none.
	unsigned chain.Kind = "unsigned"
	// unproven events have one that does not hold, or is not that of the sender.
	unproven chain.Kind = "unproven"
	// reworded events were signed in another form, such as JSON: that they say
	// the same is the runner's word.
	reworded chain.Kind = "reworded"
)

// signatures counts the events of people, systems and workers by their signatures. Events of
// machines and timers are in none of the counts: they are not signed, but follow from others.
type signatures struct {
	// Signed events are proven to be their author's, Reworded ones but for the content.
	Signed   int `json:"signed"   yaml:"signed"`
	Reworded int `json:"reworded" yaml:"reworded"`
	// Unsigned and Unproven events are not.
	Unsigned int `json:"unsigned" yaml:"unsigned"`
	Unproven int `json:"unproven" yaml:"unproven"`

	keys  *signed.Keys
	found []finding
}

// add checks the events of a record.
// A message that is no record, or that a newer version wrote, has none.
func (s *signatures) add(e *journal.Entry) {
	if e.Record == nil {
		return
	}
	for i := range e.Record.Events {
		ev := &e.Record.Events[i]
		if _, ok := audit.Describe(ev); !ok || ev.Anchor != "" { // of a machine or a timer
			continue
		}
		kind, detail, hint := s.examine(ev)
		if kind != "" {
			s.found = append(s.found, finding{kind, e.Subject, e.Seq, fmt.Sprintf("event %s %s", ev.ID, detail), hint})
		}
	}
}

// examine counts an event, and returns the kind of finding that it is, empty
// for none, with detail and hint.
//
// Every event counts as exactly one of the four. A result in another form than
// was signed is not proven, since workers sign the form that is journaled; a
// wish of a system may have come as JSON, and is only reworded.
func (s *signatures) examine(ev *forge.Event) (kind chain.Kind, detail, hint string) {
	if ev.Signature == "" {
		s.Unsigned++
		return unsigned, "has no signature", "only the runner that journaled it names its sender"
	}
	p, err := signed.Parse(ev.Signature)
	var account string
	if err == nil {
		account, err = s.keys.Confirm(&p)
	}
	if err == nil {
		err = owner(ev, &p, account)
	}
	if err != nil {
		s.Unproven++
		return unproven, "is not proven: " + err.Error(), "the runner that journaled it was taken over, or the file of keys is not that of the installation"
	}
	if content, err := journal.Content(ev); err != nil || !p.Of(content) {
		if forge.As[*forge.Result](ev.Message) != nil {
			s.Unproven++
			return unproven, "is not the result that was signed", "the runner that journaled it was taken over"
		}
		s.Reworded++
		return reworded, "was signed by " + account + " in another form, such as JSON", "only the runner that journaled it says that it is the same"
	}
	s.Signed++
	return "", "", ""
}

// owner returns an error if the account that signed a proof is not the one that the
// event says, or the proof is for something else. A worker's result is its service's,
// and for this attempt alone: else a result could be moved to another one.
func owner(ev *forge.Event, p *signed.Proof, account string) error {
	author, err := senderOf(ev, p.Subject)
	if r := forge.As[*forge.Result](ev.Message); r != nil {
		author = r.Attempt.Step.Service()
		var subject string
		if subject, err = subjects.Result(r); err == nil && subject != p.Subject {
			err = errors.New("it was signed for another attempt")
		}
		if ev.Account+ev.Ref != "" {
			err = errors.New("it was signed by a worker, and is journaled as through a gateway")
		}
	}
	if err == nil && account != author {
		err = fmt.Errorf("it was signed by %s, and is journaled as from %s", account, author)
	}
	return err
}

// senderOf returns the account behind the event of a person or a system, which
// was sent to a subject. The subject is the one that was signed, so it names
// the sender whatever the runner has journaled (ADR-0016). With a gateway it is
// the gateway's account, for the person whom it names (ADR-0094).
func senderOf(ev *forge.Event, subject string) (string, error) {
	from, err := subjects.ParseIntent(subject)
	if api, apiErr := subjects.ParseAPI(subject); apiErr == nil {
		from, err = api, nil
	}
	submit := forge.As[*forge.Submit](ev.Message)
	through := "" // as the journal says it: an event with an account came through a gateway
	if ev.Account+ev.Ref != "" {
		through = ev.Via
	}
	switch {
	case err != nil || from.Project != ev.To.Project:
		return "", errors.New("it was signed for another project")
	case from.Via != through || (from.Via == "") != (ev.Account+ev.Ref == ""):
		return "", fmt.Errorf("it was signed through %q, and is journaled as through %q", from.Via, through)
	case from.Via != "" && from.Name != ev.Actor:
		return "", fmt.Errorf("it was signed as from %s, and is journaled as from %s", from.Name, ev.Actor)
	case from.Via != "":
		return from.Via, nil
	case from.Person:
		return ev.Actor, nil
	case submit == nil:
		return "", errors.New("it was signed by a system, which may only submit")
	}
	return submit.Intent.Origin.System, nil
}
