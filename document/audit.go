package document

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
)

// CloudEvent is an event as it is published.
type CloudEvent[T any] struct {
	SpecVersion string    `json:"specversion"`
	ID          string    `json:"id"`
	Source      string    `json:"source"`
	Type        string    `json:"type"`
	Subject     string    `json:"subject"`
	Time        time.Time `json:"time"`
	ContentType string    `json:"datacontenttype"`
	Data        T         `json:"data"`
}

// AuditRequest asks who did what in a project, the newest first. The zero
// values ask for the newest of everything.
type AuditRequest struct {
	// Intent is the only one that is asked about; empty for all, and for what
	// people did to the whole project.
	Intent forge.IntentID `json:"intent,omitempty"`
	// Actor is the name of a person, system or worker, whatever its case; also
	// of one for whom a system asked.
	Actor string `json:"actor,omitempty"`
	// Action has some of AuditActions; empty for all.
	Action []string `json:"action,omitempty"`
	// Since and Until bound the time of the decisions: not before, and before.
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero"`
	// After is next of the answer before.
	After string `json:"after,omitempty"`
	// Limit bounds the events of the page; 0 stands for 100.
	Limit int `json:"limit,omitempty"`
}

// Audit answers who did what in a project, the newest first, and whether its
// journals prove it. Texts are as people and agents wrote them, and cut:
// pfl-forge audit-log export has the whole, with the signatures.
type Audit struct {
	Events []CloudEvent[Audited] `json:"events"`
	// Next is the value of after that continues; empty at the end.
	Next string `json:"next,omitempty"`
	// Chain says how far the journals hold.
	Chain AuditChain `json:"chain"`
	// Newer counts records that this version does not understand, which are left out.
	Newer int `json:"newer,omitempty"`

	// room is how many bytes the page may still take.
	room int
}

// AuditChain is the outcome of a verification of journals: of those of the
// project, or of the intent's and the project's where one intent is asked about.
type AuditChain struct {
	// Whole says that the journals prove what they hold.
	Whole bool `json:"whole"`
	// Journals and Records count what was read.
	Journals int `json:"journals"`
	Records  int `json:"records"`
	// Findings are the first places at which something is wrong, by journal and
	// sequence; Found counts all.
	Findings []AuditFinding `json:"findings"`
	Found    int            `json:"found"`
}

// AuditFinding says what is wrong at a place of a journal.
type AuditFinding struct {
	// Kind is broken, missing or foreign; what is foreign breaks nothing.
	Kind     string `json:"kind"`
	Journal  string `json:"journal"`
	Sequence uint64 `json:"sequence"`
	Detail   string `json:"detail"`
	// Hint says what to do.
	Hint string `json:"hint"`
}

// AuditActions lists the actions, in the order of their names.
var AuditActions = []string{
	"answered", "approved", "asked", "asked_again", "cancelled", "changes_requested", "edited", "forgot", "merged",
	"paused", "paused_schedule", "ran", "reflected", "rejected", "resumed", "resumed_schedule", "retried", "set_schedules", "started", "taught",
	"told_of_comment",
}

// An audit is for those who answer for an installation, and so it names what other readers do
// not get: the accounts at a gateway, and by which message or request a person spoke through it.
// Nothing in it is a credential: of a token it has the name of the entry in the operator's file.

// Audited says who did what. Fields that an action has nothing to say about are left out.
type Audited struct {
	// Action is asked, asked_again (with another text), told_of_comment,
	// edited, approved, changes_requested, rejected, answered, retried,
	// cancelled, paused, resumed, reflected, started, ran or merged.
	Action string `json:"action"`
	// Project is the one that it is about.
	Project forge.ProjectID `json:"project"`
	// Intent is the one that it is about; empty for a whole project.
	Intent forge.IntentID `json:"intent,omitempty"`
	// Task is the one that it is about; empty for a whole intent.
	Task forge.TaskID `json:"task,omitempty"`
	// Author is whoever is behind it.
	Author AuditAuthor `json:"author"`
	// Plan is the hash of the plan, or of the patch, that was approved, or of
	// which changes were asked for; of a retry the commit that it adopts.
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
	Run *AuditRun `json:"run,omitempty"`
	// Merge names the commit that was merged; nil for everything else.
	Merge *AuditMerge `json:"merge,omitempty"`
	// Record is where it stands in the journals.
	Record AuditRecord `json:"record"`
	// Proof is the author's signature; nil of what is unsigned.
	Proof *AuditProof `json:"proof,omitempty"`
}

// AuditProof is the signature of an event's author, as the runner checked it.
type AuditProof struct {
	// Via is the account that handed it to the runner that decided: the
	// author's own, or a runner's that stored it for a system.
	Via string `json:"via"`
	// Key is the author's public key, in base64 as in URLs.
	Key string `json:"key"`
	// SignedAt is the time of the signature, by the author's clock.
	SignedAt time.Time `json:"signed_at"`
	// Signature has everything that was signed, and the signature, as package bus/signed reads it.
	Signature string `json:"signature,omitempty"`
}

// AuditAuthor says who is behind an event. Name is the person, system or replica.
type AuditAuthor struct {
	// Kind is person, system, worker or machine: a state machine, such as that of a parent intent.
	Kind string `json:"kind"`
	// Name is empty for machines whose message has no actor.
	Name string `json:"name,omitempty"`
	// Origin says where the request of a system came from, as that system claims.
	Origin *AuditOrigin `json:"origin,omitempty"`
	// Gateway says through which gateway the author acted; nil of whoever sent it without one.
	Gateway *AuditGateway `json:"gateway,omitempty"`
}

// AuditGateway is a gateway through which a person or system acted. Who that was is its word.
type AuditGateway struct {
	// Name is that of its account.
	Name string `json:"name"`
	// Account says who the author is there, such as "token ada-laptop".
	Account string `json:"account,omitempty"`
	// Ref says by what the author told it, such as the address of a comment.
	Ref string `json:"ref,omitempty"`
}

// AuditOrigin is forge.Origin in an export.
type AuditOrigin struct {
	// System is the publisher's name.
	System string `json:"system,omitempty"`
	// EventID is the publisher's own id of its request.
	EventID string `json:"event_id,omitempty"`
	// Actor is the person behind it, as the publisher claims.
	Actor string `json:"actor,omitempty"`
}

// AuditRun is an attempt, as its worker reported it.
type AuditRun struct {
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

// AuditMerge is a commit on the base branch.
type AuditMerge struct {
	// Commit is the new tip of the base branch.
	Commit string `json:"commit"`
	// Base is the commit that the base branch was at before, the parent of Commit.
	Base string `json:"base"`
	// Tree is the tree that was verified and reviewed.
	Tree string `json:"tree"`
	// Patch identifies the change, whatever it is based on.
	Patch string `json:"patch_id,omitempty"`
}

// AuditRecord joins an event with the chain of its journal.
type AuditRecord struct {
	// Journal is the subject of the journal.
	Journal string `json:"journal"`
	// Sequence is that of the record in its stream.
	Sequence uint64 `json:"sequence"`
	// Hash is that of the record.
	Hash string `json:"hash"`
	// Previous is the hash of the message before it, as the record carries it.
	Previous string `json:"previous"`
	// Index counts the events of the record from 0.
	Index int `json:"index"`
	// Event is the id of the event.
	Event string `json:"event"`
	// Anchor names the record by which another machine sent the event.
	Anchor string `json:"anchor,omitempty"`
}

const (
	// auditLimit is how many events a page has unless it is said, and mostAudit
	// how many it can be asked for.
	auditLimit, mostAudit = 100, 1000
	// auditBytes bounds the events of a page, as JSON, about; auditText each
	// text, and auditBase the rest of an event.
	auditBytes, auditText, auditBase = 512 << 10, 2000, 900
	// mostFindings bounds those that are told, and maxActor a name, in bytes.
	mostFindings, maxActor = 20, 200
)

// Check returns every mistake in a request, and sets the limit that stands for 0.
func (r *AuditRequest) Check() (errs []forge.FieldError) {
	note := func(field, format string, args ...any) {
		errs = append(errs, forge.FieldError{Field: field, Reason: fmt.Sprintf(format, args...)})
	}
	if r.Intent != "" {
		if _, err := forge.ParseIntentID(string(r.Intent)); err != nil {
			note("intent", "%v", err)
		}
	}
	if len(r.Actor) > maxActor {
		note("actor", "has %d bytes; at most %d are allowed", len(r.Actor), maxActor)
	}
	for _, a := range r.Action {
		if !slices.Contains(AuditActions, a) {
			note("action", "is %.80q; it can be %s", a, strings.Join(AuditActions, ", "))
		}
	}
	if !r.Until.IsZero() && !r.Since.Before(r.Until) {
		note("until", "is not after since")
	}
	if _, err := ParseAuditPlace(r.After); err != nil {
		note("after", "%v", err)
	}
	if r.Limit < 0 || r.Limit > mostAudit {
		note("limit", "is %d; it can be 1 to %d", r.Limit, mostAudit)
	}
	if r.Limit == 0 {
		r.Limit = auditLimit
	}
	return errs
}

// Of returns the intent that it is about.
func (r *AuditRequest) Of() forge.IntentID { return r.Intent }

// Wants reports whether an event that was decided at a time is asked for.
func (r *AuditRequest) Wants(e *Audited, at time.Time) bool {
	named := strings.EqualFold(e.Author.Name, r.Actor) || e.Author.Origin != nil && strings.EqualFold(e.Author.Origin.Actor, r.Actor)
	return (r.Intent == "" || e.Intent == r.Intent) && (r.Actor == "" || named) && (len(r.Action) == 0 || slices.Contains(r.Action, e.Action)) &&
		!at.Before(r.Since) && (r.Until.IsZero() || at.Before(r.Until))
}

// AuditPlace is the place of an event among all of its project. Readers hand it back as
// a word; one that was made up leads to other events of the same project, or nowhere.
type AuditPlace struct {
	// Decided is the time of the decision, and not before that of any record
	// before it in its journal, in nanoseconds since 1970.
	Decided int64
	// Stream is 0 for the journals of projects, and 1 for those of intents. Seq
	// is the sequence in the stream.
	Stream int
	Seq    uint64
	// Index counts the events of the record from 0.
	Index int
}

// String returns the place as readers get it.
func (p AuditPlace) String() string {
	return fmt.Sprintf("%d.%d.%d.%d", p.Decided, p.Stream, p.Seq, p.Index)
}

// ParseAuditPlace is the reverse of String; an empty text stands for the place
// behind the newest event.
func ParseAuditPlace(s string) (p AuditPlace, err error) {
	if s == "" {
		return AuditPlace{Decided: 1<<63 - 1}, nil
	}
	parts := strings.Split(s, ".")
	if len(parts) == 4 {
		p.Decided, _ = strconv.ParseInt(parts[0], 10, 64) // what is not understood is not written the same
		p.Stream, _ = strconv.Atoi(parts[1])
		p.Seq, _ = strconv.ParseUint(parts[2], 10, 64)
		p.Index, _ = strconv.Atoi(parts[3])
	}
	if p.String() != s || p.Stream < 0 || p.Stream > 1 || p.Index < 0 {
		return p, fmt.Errorf("is %.60q, and no next of an answer", s)
	}
	return p, nil
}

// Add appends an event to the page, with its texts cut and without what was
// signed; false if there is no room for it. There is always room for the first
// one, so that whoever follows Next comes to the end.
func (a *Audit) Add(e CloudEvent[Audited]) bool {
	if len(a.Events) == 0 {
		a.room = auditBytes
	}
	size := auditBase
	for _, text := range []*string{&e.Data.Title, &e.Data.Question, &e.Data.Answer, &e.Data.Reason, &e.Data.Plan, &e.Data.Author.Name} {
		if len(*text) > auditText {
			*text = beginning(*text, auditText) + "…"
		}
		size += written(*text)
	}
	if p := e.Data.Proof; p != nil {
		proof := *p
		proof.Signature = ""
		e.Data.Proof = &proof
	}
	if a.room -= size; a.room < 0 && len(a.Events) > 0 {
		return false
	}
	a.Events = append(a.Events, e)
	return true
}

// Find adds a finding, unless there are as many as are told: then it is only counted. Kinds that
// break nothing are told as well, because a message that is no record is of interest to an auditor.
func (c *AuditChain) Find(f AuditFinding) {
	if c.Found++; len(c.Findings) < mostFindings {
		c.Findings = append(c.Findings, f)
	}
}
