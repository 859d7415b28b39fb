package auditlog

import (
	"encoding/base64"
	"fmt"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/changes"
	"github.com/pfl-forge/pfl-forge/bus/journal"
	"github.com/pfl-forge/pfl-forge/bus/journal/chain"
	"github.com/pfl-forge/pfl-forge/bus/signed"
	told "github.com/pfl-forge/pfl-forge/services/runner/report"
)

// Event says who did what. Fields that an action has nothing to say about are left out.
type Event struct {
	// Action is asked, edited, approved, rejected, answered, retried, cancelled, paused, resumed, reflected,
	// started, ran or merged.
	Action string `json:"action"`
	// Project is the one that it is about.
	Project forge.ProjectID `json:"project"`
	// Intent is the one that it is about; empty for a whole project.
	Intent forge.IntentID `json:"intent,omitempty"`
	// Task is the one that it is about; empty for a whole intent.
	Task forge.TaskID `json:"task,omitempty"`
	// Author is whoever is behind it.
	Author Author `json:"author"`
	// Plan is the hash of the plan, or of the patch, that was approved.
	Plan string `json:"plan,omitempty"`
	// Title is that of an intent that was asked for.
	Title string `json:"title,omitempty"`
	// Question is the one that a person answered, if the answer repeats it.
	Question string `json:"question,omitempty"`
	// Answer is the answer to it.
	Answer string `json:"answer,omitempty"`
	// Reason gives a person's own words, or says why an attempt failed.
	Reason string `json:"reason,omitempty"`
	// Run is an attempt of a step; nil for what people and systems do.
	Run *Run `json:"run,omitempty"`
	// Merge names the commit that was merged; nil for everything else.
	Merge *Merge `json:"merge,omitempty"`
	// Record is where it stands in the journals.
	Record Record `json:"record"`
	// Proof is the author's signature; nil of what is unsigned.
	Proof *Proof `json:"proof,omitempty"`
}

// Proof is the signature of an event's author, as the runner checked it.
type Proof struct {
	// Via is the account that handed it to the runner that decided: the author's own, or a runner's that stored it for a system.
	Via string `json:"via"`
	// Key is the author's public key, in base64 as in URLs.
	Key string `json:"key"`
	// SignedAt is the time of the signature, by the author's clock.
	SignedAt time.Time `json:"signed_at"`
	// Signature has everything that was signed, and the signature, as package bus/signed reads it.
	Signature string `json:"signature"`
}

// proofOf returns the signature of an event; nil if it has none that can be read.
func proofOf(ev *forge.Event) *Proof {
	p, err := signed.Parse(ev.Signature)
	if err != nil {
		return nil
	}
	return &Proof{Via: ev.Via, Key: base64.RawURLEncoding.EncodeToString(p.Key), SignedAt: p.At, Signature: ev.Signature}
}

// Author says who is behind an event. Name is the person, system or replica.
type Author struct {
	// Kind is person, system, worker or machine: a state machine, such as that of a parent intent.
	Kind string `json:"kind"`
	// Name is empty for machines whose message has no actor.
	Name string `json:"name,omitempty"`
	// Origin says where the request of a system came from, as that system claims.
	Origin *Origin `json:"origin,omitempty"`
	// Gateway says through which gateway the author acted; nil of whoever sent it without one.
	Gateway *Gateway `json:"gateway,omitempty"`
}

// Gateway is a gateway through which a person or system acted. Who that was is its word.
type Gateway struct {
	// Name is that of its account.
	Name string `json:"name"`
	// Account says who the author is there, such as "token ada-laptop".
	Account string `json:"account,omitempty"`
	// Ref says by what the author told it, such as the address of a comment.
	Ref string `json:"ref,omitempty"`
}

// Origin is forge.Origin in an export.
type Origin struct {
	// System is the publisher's name.
	System string `json:"system,omitempty"`
	// EventID is the publisher's own id of its request.
	EventID string `json:"event_id,omitempty"`
	// Actor is the person behind it, as the publisher claims.
	Actor string `json:"actor,omitempty"`
}

// Run is an attempt, as its worker reported it.
type Run struct {
	Step     forge.Step     `json:"step"`
	Attempt  int            `json:"attempt"`
	Claim    int            `json:"claim"`
	Agent    string         `json:"agent,omitempty"`
	Model    string         `json:"model,omitempty"`
	Executor forge.Executor `json:"executor,omitempty"`
	// Outcome is ok, or why it was not; empty when it only started.
	Outcome string    `json:"outcome,omitempty"`
	Started time.Time `json:"started_at,omitzero"`
	Seconds float64   `json:"seconds,omitempty"`
	// Head is the commit that was made, verified or reviewed.
	Head string `json:"head,omitempty"`
}

// Merge is a commit on the base branch.
type Merge struct {
	// Commit is the new tip of the base branch.
	Commit string `json:"commit"`
	// Base is the commit that the base branch was at before, the parent of Commit.
	Base string `json:"base"`
	// Tree is the tree that was verified and reviewed.
	Tree string `json:"tree"`
	// Patch identifies the change, whatever it is based on.
	Patch string `json:"patch_id,omitempty"`
}

// Record joins an event with the chain of its journal.
type Record struct {
	// Journal is the subject of the journal.
	Journal string `json:"journal"`
	// Sequence is that of the record in its stream.
	Sequence uint64 `json:"sequence"`
	// Hash is that of the record.
	Hash chain.Hash `json:"hash"`
	// Previous is the hash of the message before it, as the record carries it.
	Previous string `json:"previous"`
	// Index counts the events of the record from 0.
	Index int `json:"index"`
	// Event is the id of the event.
	Event string `json:"event"`
	// Anchor names the record by which another machine sent the event.
	Anchor string `json:"anchor,omitempty"`
}

// The kinds of authors.
const (
	authorPerson  = "person"
	authorSystem  = "system"
	authorWorker  = "worker"
	authorMachine = "machine"
)

// eventType is the type of the CloudEvents, with the action in its place.
const eventType = "io.pfl-forge.audit.%s.v1"

// collection collects the lines of an export.
type collection struct {
	// wants reports whether the time of a decision is asked for.
	wants func(at time.Time) bool
	// lines are in the order in which they were read.
	lines []line
	// seen has the intents that have a journal.
	seen map[forge.IntentID]bool
	// last is the time of the last decision of either stream.
	last [2]time.Time
	// newer counts records that this version does not understand.
	newer int
	// audit follows the chains of what is exported.
	audit *chain.Audit
}

// add adds the events of a record.
func (c *collection) add(e *journal.Entry) error {
	if c.seen == nil {
		c.seen = map[forge.IntentID]bool{}
	}
	c.seen[e.Key.Intent] = true
	c.audit.Add(&e.Link)
	if e.Record == nil {
		if e.Other == "" {
			c.newer++
		}
		return nil
	}
	stream := 0
	if !e.Key.IsProject() {
		stream = 1
	}
	for i := range e.Record.Events {
		ev := &e.Record.Events[i]
		if ev.At.After(c.last[stream]) {
			c.last[stream] = ev.At
		}
		data, ok := describe(ev)
		if !ok || !c.wants(ev.At) {
			continue
		}
		data.Record = Record{
			Journal: e.Subject, Sequence: e.Seq, Hash: e.Hash, Previous: e.Previous, Index: i, Event: ev.ID, Anchor: ev.Anchor,
		}
		data.Proof = proofOf(ev)
		c.lines = append(c.lines, line{c.last[stream], stream, cloudEvent(ev, data)})
	}
	return nil
}

// cloudEvent returns an event as it is printed. Its id is its place in the journals.
func cloudEvent(ev *forge.Event, data Event) changes.CloudEvent[Event] {
	subject := string(data.Intent)
	if subject == "" {
		subject = string(data.Project)
	}
	return changes.CloudEvent[Event]{
		SpecVersion: changes.CloudEventsVersion, ID: fmt.Sprintf("%s@%d/%d", data.Record.Journal, data.Record.Sequence, data.Record.Index),
		Source: "/pfl-forge/" + string(data.Project), Type: fmt.Sprintf(eventType, data.Action), Subject: subject, Time: ev.At.UTC(),
		ContentType: "application/json", Data: data,
	}
}

// describe returns an event of a person, system or worker as an export has it; false for the events that
// machines and timers send one another.
func describe(ev *forge.Event) (Event, bool) {
	e := Event{Project: ev.To.Project, Intent: ev.To.Intent, Author: Author{Kind: authorPerson, Name: ev.Actor}}
	if ev.Anchor != "" {
		e.Author.Kind = authorMachine
	}
	if ev.Account != "" {
		e.Author.Gateway = &Gateway{ev.Via, ev.Account, ev.Ref}
	}
	switch m := ev.Message.(type) {
	case *forge.Submit:
		e.Action, e.Title = "asked", m.Intent.Title
		if o := m.Intent.Origin; o != (forge.Origin{}) {
			e.Author.Origin = &Origin{o.System, o.EventID, o.Actor}
		}
		if m.Intent.Source == forge.SourceSystem && ev.Anchor == "" {
			e.Author.Kind = authorSystem
		}
	case *forge.Edit:
		e.Action = "edited"
	case *forge.Approve:
		e.Action, e.Plan = "approved", m.Plan
	case *forge.Reject:
		e.Action, e.Reason = "rejected", m.Reason
	case *forge.Answer:
		e.Action, e.Question, e.Answer = "answered", m.Question, m.Answer
	case *forge.Retry:
		e.Action, e.Reason = "retried", m.Instructions
	case *forge.Cancel:
		e.Action, e.Task, e.Reason = "cancelled", m.Task, m.Reason
	case *forge.Pause:
		e.Action, e.Task, e.Reason = "paused", m.Task, m.Reason
	case *forge.Resume:
		e.Action, e.Task = "resumed", m.Task
	case *forge.Reflect:
		e.Action = "reflected"
	case *forge.Teach:
		e.Action = "taught"
		if m.Knowledge == nil {
			e.Action = "forgot"
		}
	case *forge.Result:
		attempt(&e, m)
	default:
		return e, false
	}
	return e, true
}

// attempt says what a worker reported.
func attempt(e *Event, r *forge.Result) {
	e.Action, e.Intent, e.Task = "ran", r.To.Intent, r.Attempt.Task
	e.Author = Author{Kind: authorWorker, Name: string(r.Replica)}
	e.Run = &Run{
		Step: r.Attempt.Step, Attempt: r.Attempt.Number, Claim: r.Attempt.Claim, Agent: r.Agent, Model: r.Model, Executor: r.Executor,
		Started: r.StartedAt.UTC(), Seconds: r.Duration.Seconds(),
	}
	if r.IsStart() {
		e.Action = "started"
		return
	}
	e.Run.Outcome = told.Outcome(r)
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
			e.Action, e.Merge = "merged", &Merge{out.Commit, out.Parent, out.Tree, out.PatchID}
		}
	default:
	}
}
