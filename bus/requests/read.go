package requests

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/codec"
	"github.com/pfl-forge/pfl-forge/bus/internal/wire"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/internal/term"
	"github.com/pfl-forge/pfl-forge/messages"
)

// ReadIntent returns the event of a message in FORGE_INTENTS, from a person or
// a system. The error is a *wire.GarbageError, a *wire.UnknownError or a
// *SubmissionError.
func ReadIntent(m jetstream.Msg) (forge.Event, error) {
	from, err := subjects.ParseIntent(m.Subject())
	if err != nil {
		return forge.Event{}, wire.Garbage("Event", "%w", err)
	}
	if err := wire.Relayed(m.Headers()); err != nil {
		return forge.Event{}, err
	}
	if from.Person {
		return readPersonal(m, from)
	}
	meta, err := m.Metadata()
	if err != nil {
		return forge.Event{}, err
	}
	header := m.Headers()
	return submission{
		from: from, contentType: header.Get(wire.HeaderContentType), data: m.Data(),
		fallback: cmp.Or(header.Get(jetstream.MsgIDHeader), fmt.Sprintf("%d@%d", meta.Sequence.Stream, meta.Timestamp.UnixNano())),
	}.read()
}

// readPersonal reads the event of a person. It may leave out what the subject
// says anyway, and may be JSON. Where content and subject differ it is refused:
// the server has checked only the subject.
func readPersonal(m jetstream.Msg, from subjects.Sender) (forge.Event, error) {
	read := wire.Events.Unmarshal
	if m.Headers().Get(wire.HeaderContentType) == wire.TypeJSON || codec.LooksLikeJSON(m.Data()) {
		read = wire.Events.ParseJSON
	}
	ev, err := read(m.Data())
	if err != nil {
		return ev, err
	}
	if got := messages.Verb(ev.Message); got != from.Verb {
		return ev, wire.Garbage("Event", "it was sent as %q, but holds %q", from.Verb, got)
	}
	complete(&ev, from)
	if ev.ID == "" {
		ev.ID = m.Headers().Get(jetstream.MsgIDHeader)
	}
	if ev.ID == "" {
		return ev, wire.Garbage("Event", "id is missing")
	}
	if ev.Actor != from.Name {
		return ev, wire.Garbage("Event", "it was sent by %q, but says that it is from %q", from.Name, ev.Actor)
	}
	if ev.To.Project != from.Project {
		return ev, wire.Garbage("Event", "it was sent to project %q, but is for %q", from.Project, ev.To.Project)
	}
	if err := unsaid(&ev, from); err != nil {
		return ev, err
	}
	ev.Via = from.Via
	if submit, ok := ev.Message.(*forge.Submit); ok {
		if err := checkPersonalSubmit(&ev, submit, from); err != nil {
			return ev, err
		}
	}
	if field := unsayable(ev.Message); field != "" {
		return ev, wrong(from.Verb+"."+field, "is not for a sender to say; leave it out")
	}
	if _, err := subjects.Personal(ev.To, from.Name, from.Verb); err != nil {
		return ev, wire.Garbage("Event", "%w", err)
	}
	return ev, nil
}

// unsayable names the field of a message that only machines set, if it is set.
func unsayable(m forge.Message) string {
	switch m := m.(type) {
	case *forge.Pause:
		if m.Number != 0 {
			return "number"
		}
	case *forge.Resume:
		if m.Number != 0 {
			return "number"
		}
	case *forge.Retry:
		if len(m.Requesters) > 0 {
			return "requesters"
		}
	default:
	}
	return ""
}

// unsaid returns an error if an event has fields that no sender may set, or fields that only a
// gateway may set about the person or system that it acts for.
func unsaid(ev *forge.Event, from subjects.Sender) error {
	switch {
	case ev.Anchor != "":
		return wrong("anchor", "is for machines to say; leave it out")
	case ev.Signature+ev.Via != "":
		return wrong("signature", "belongs into the headers; leave signature and via out")
	}
	if errs := account(from, ev.Account, ev.Ref); len(errs) > 0 {
		return wrongs(errs)
	}
	return nil
}

// account checks how a gateway names whom it speaks for. It always names them, and so
// an event with an account is one that came through a gateway; others say nothing.
func account(from subjects.Sender, account, ref string) (errs []forge.FieldError) {
	switch {
	case from.Via == "" && account+ref != "":
		errs = append(errs, forge.FieldError{Field: "account", Reason: "is for gateways to say; leave account and ref out"})
	case from.Via != "" && strings.TrimSpace(account) == "":
		errs = append(errs, forge.FieldError{Field: "account", Reason: "is empty; a gateway says who it speaks for is to it"})
	}
	for field, text := range map[string]string{"account": account, "ref": ref} {
		reason := badName(text)
		if reason == "" && term.Sanitize(text) != text {
			reason = "holds a character that hides or reorders text"
		}
		if reason != "" {
			errs = append(errs, forge.FieldError{Field: field, Reason: reason})
		}
	}
	return errs
}

// checkPersonalSubmit checks the intent that a person submits. It sets the
// source if that is missing, and refuses fields that are decided here. Who asks is
// the person by whose subject it came: the server lets only that one publish there.
// Commands do not come through a gateway: a token that leaked would be enough for that.
func checkPersonalSubmit(ev *forge.Event, submit *forge.Submit, from subjects.Sender) error {
	in := &submit.Intent
	if in.Project != ev.To.Project {
		return wire.Garbage("Event", "it was sent to project %q, but submits to %q", ev.To.Project, in.Project)
	}
	if in.ID != ev.To.Intent {
		return wire.Garbage("Event", "it submits intent %q, but is for %q", in.ID, ev.To.Intent)
	}
	if in.Source == "" {
		in.Source = forge.SourceHuman
	}
	if in.Source == forge.SourceReflection || in.Source == forge.SourceSystemReflection {
		return wrong("source", "is not for a sender to say; leave it out")
	}
	errs := append(beyond(*submit, "", "Intent"), beyond(undecided(*in, document.Persons), "")...)
	if from.Via != "" {
		errs = append(errs, commands(in)...)
	}
	if len(errs) > 0 {
		return wrongs(errs)
	}
	in.Requesters = []forge.Identity{{Name: ev.Actor, Proven: true}}
	if actor := in.Origin.Actor; actor != "" && actor != ev.Actor {
		in.Requesters = append(in.Requesters, forge.Identity{Name: actor}) // whom they say that they ask for
	}
	return nil
}

// commands returns an error for each command that decides a criterion.
func commands(in *forge.Intent) (errs []forge.FieldError) {
	for _, c := range in.Checks {
		if c.Command != "" {
			errs = append(errs, forge.FieldError{
				Field: fmt.Sprintf("criteria[%d].command", c.Criterion-1), Reason: "cannot be set through a gateway; name a check of the project",
			})
		}
	}
	return errs
}

// complete fills in the parts that an event's subject and its payload have in
// common, where only one of them gives them.
func complete(ev *forge.Event, from subjects.Sender) {
	ev.To.Project = cmp.Or(ev.To.Project, from.Project)
	ev.Actor = cmp.Or(ev.Actor, from.Name)
	submit := forge.As[*forge.Submit](ev.Message)
	if submit == nil {
		return
	}
	in := &submit.Intent
	in.Project = cmp.Or(in.Project, from.Project)
	ev.To.Intent = cmp.Or(ev.To.Intent, in.ID)
	in.ID = cmp.Or(in.ID, ev.To.Intent)
}
