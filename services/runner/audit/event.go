package audit

import (
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/changes"
	"github.com/pfl-forge/pfl-forge/bus/signed"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/services/runner/report"
)

// proofOf returns the signature of an event; nil if it has none that can be read.
func proofOf(ev *forge.Event) *document.AuditProof {
	p, err := signed.Parse(ev.Signature)
	if err != nil {
		return nil
	}
	return &document.AuditProof{Via: ev.Via, Key: base64.RawURLEncoding.EncodeToString(p.Key), SignedAt: p.At, Signature: ev.Signature}
}

// The kinds of authors.
const (
	authorPerson  = "person"
	authorSystem  = "system"
	authorWorker  = "worker"
	authorMachine = "machine"
)

// The actions of a Submit: of the first one in a journal, of those by which a
// publisher sends another text, and of those by which a system tells of comments.
const (
	asked       = "asked"
	askedAgain  = "asked_again"
	toldComment = "told_of_comment"
)

// eventType is the type of the CloudEvents, with the action in its place.
const eventType = "io.pfl-forge.audit.%s.v1"

// cloudEvent returns an event as it is printed. Its id is its place in the journals.
func cloudEvent(ev *forge.Event, data document.Audited) document.CloudEvent[document.Audited] {
	subject := string(data.Intent)
	if subject == "" {
		subject = string(data.Project)
	}
	return document.CloudEvent[document.Audited]{
		SpecVersion: changes.CloudEventsVersion, ID: fmt.Sprintf("%s@%d/%d", data.Record.Journal, data.Record.Sequence, data.Record.Index),
		Source: "/pfl-forge/" + string(data.Project), Type: fmt.Sprintf(eventType, data.Action), Subject: subject, Time: ev.At.UTC(),
		ContentType: "application/json", Data: data,
	}
}

// Describe returns an event of a person, system or worker as an export has it;
// false for the events that machines and timers send one another.
func Describe(ev *forge.Event) (document.Audited, bool) {
	e := document.Audited{Project: ev.To.Project, Intent: ev.To.Intent, Author: document.AuditAuthor{Kind: authorPerson, Name: ev.Actor}}
	if ev.Anchor != "" {
		e.Author.Kind = authorMachine
	}
	if ev.Account != "" {
		e.Author.Gateway = &document.AuditGateway{Name: ev.Via, Account: ev.Account, Ref: ev.Ref}
	}
	switch m := ev.Message.(type) {
	case *forge.Submit:
		e.Action, e.Title = asked, m.Intent.Title
		if c := m.Comments; c != nil {
			e.Action, e.Reason = toldComment, fmt.Sprintf("%s by %s; %d there by then", c.Ref, c.Account, c.Count)
		}
		if o := m.Intent.Origin; o != (forge.Origin{}) {
			e.Author.Origin = &document.AuditOrigin{System: o.System, EventID: o.EventID, Actor: o.Actor}
		}
		if m.Intent.Source == forge.SourceSystem && ev.Anchor == "" {
			e.Author.Kind = authorSystem
		}
	case *forge.Edit:
		e.Action = "edited"
	case *forge.Approve:
		e.Action, e.Plan = "approved", m.Plan
	case *forge.RequestChanges:
		e.Action, e.Plan, e.Reason, e.Task = "changes_requested", m.Hash, m.Words, m.Task
	case *forge.Reject:
		e.Action, e.Reason = "rejected", m.Reason
	case *forge.Answer:
		e.Action, e.Question, e.Answer = "answered", m.Question, m.Answer
	case *forge.Retry:
		e.Action, e.Reason, e.Plan = "retried", m.Instructions, m.Adopt
	case *forge.Cancel:
		e.Action, e.Task, e.Reason = "cancelled", m.Task, m.Reason
	case *forge.Pause:
		e.Action, e.Task, e.Reason = "paused", m.Task, m.Reason
	case *forge.Resume:
		e.Action, e.Task = "resumed", m.Task
	case *forge.Reflect, *forge.Teach, *forge.SetSchedules, *forge.PauseSchedule:
		ofProject(&e, m)
	case *forge.Result:
		attempt(&e, m)
	default:
		return e, false
	}
	return e, true
}

// ofProject says what a person wished for a whole project.
func ofProject(e *document.Audited, m forge.Message) {
	switch m := m.(type) {
	case *forge.Reflect:
		e.Action = "reflected"
	case *forge.Teach:
		e.Action = map[bool]string{true: "forgot", false: "taught"}[m.Knowledge == nil]
	case *forge.SetSchedules:
		var names []string
		for i := range m.Schedules {
			names = append(names, m.Schedules[i].Name)
		}
		e.Action, e.Title = "set_schedules", strings.Join(names, ", ")
	case *forge.PauseSchedule:
		e.Action, e.Title, e.Reason = map[bool]string{true: "paused_schedule", false: "resumed_schedule"}[m.Paused], m.Name, m.Reason
	default:
	}
}

// attempt says what a worker reported.
func attempt(e *document.Audited, r *forge.Result) {
	e.Action, e.Intent, e.Task = "ran", r.To.Intent, r.Attempt.Task
	e.Author = document.AuditAuthor{Kind: authorWorker, Name: string(r.Replica)}
	e.Run = &document.AuditRun{
		Step: r.Attempt.Step, Attempt: r.Attempt.Number, Claim: r.Attempt.Claim, Agent: r.Agent, Model: r.Model, Executor: r.Executor,
		Started: r.StartedAt.UTC(), Seconds: r.Duration.Seconds(),
	}
	if r.IsStart() {
		e.Action = "started"
		return
	}
	e.Run.Outcome = report.Outcome(r)
	switch out := r.Output.(type) {
	case *forge.Failure:
		e.Reason = out.Message
	case *forge.Implementation:
		e.Run.Head = out.Head
	case *forge.Rebase:
		e.Run.Head = out.Head
	case *forge.Review:
		e.Run.Head = out.Head
	case *forge.MergeResult:
		if e.Run.Outcome = string(out.Outcome); out.Outcome == forge.MergeDone {
			e.Action, e.Merge = "merged", &document.AuditMerge{Commit: out.Commit, Base: out.Parent, Tree: out.Tree, Patch: out.PatchID}
		}
	default:
	}
}
