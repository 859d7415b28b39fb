// Package audit tells from journals who did what: who asked, approved, ran and merged. The command
// audit-log export prints it, and a runner answers auditors with a page of it.
//
// It reads the entries of journals as package journal hands them out, with the
// chain of each, so that what is told and what is verified are the same bytes.
// It keeps no entry, but the hash of each, by which the chains are compared at
// the end: some 100 MB for a project with a million records, beside the page.
//
// Unlike package report it tells the names of accounts at a gateway, and the
// references by which people spoke through it: it is for auditors.
package audit

import (
	"cmp"
	"slices"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/journal"
	"github.com/pfl-forge/pfl-forge/bus/journal/chain"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
	"github.com/pfl-forge/pfl-forge/document"
)

// Line is an event of a person, system or worker, with its place in the order of decisions. A
// reader gives the place to get the lines before it; it stays the same as long as the journals do.
type Line struct {
	Place document.AuditPlace
	Event document.CloudEvent[document.Audited]
}

// Compare orders places as their events were decided: by time, and within a
// journal by the records, also where the clock of a runner was behind.
func Compare(a, b document.AuditPlace) int {
	return cmp.Or(cmp.Compare(a.Decided, b.Decided), cmp.Compare(a.Stream, b.Stream), cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.Index, b.Index))
}

// Reader makes lines of the entries of journals, in the order in which these are read.
type Reader struct {
	// Chains follows the chains of what is read.
	Chains *chain.Audit
	// Newer counts records that this version does not understand.
	Newer int
	// last has the time of the last decision of each journal.
	last map[forge.Key]time.Time
}

// NewReader returns a Reader of the journals of a scope.
func NewReader(scope forge.Key) *Reader {
	return &Reader{Chains: Chains(scope), last: map[forge.Key]time.Time{}}
}

// Has reports whether a journal was read, also if no line was made of it.
func (r *Reader) Has(key forge.Key) bool {
	_, read := r.last[key]
	return read
}

// Add returns the lines of an entry. Those of one journal have to come in their
// order; that of the journals among each other is of no consequence, since the
// newest message of each is handed out late.
func (r *Reader) Add(e *journal.Entry) (lines []Line) {
	last := r.last[e.Key]
	defer func() { r.last[e.Key] = last }()
	r.Chains.Add(&e.Link)
	if e.Record == nil {
		if e.Other == "" {
			r.Newer++
		}
		return nil
	}
	stream, known := 0, !last.IsZero()
	if !e.Key.IsProject() {
		stream = 1
	}
	for i := range e.Record.Events {
		ev := &e.Record.Events[i]
		if ev.At.After(last) {
			last = ev.At
		}
		data, ok := Describe(ev)
		if !ok {
			continue
		}
		data.Record = document.AuditRecord{
			Journal: e.Subject, Sequence: e.Seq, Hash: e.Hash.String(), Previous: e.Previous, Index: i, Event: ev.ID, Anchor: ev.Anchor,
		}
		if data.Action == asked {
			if known {
				data.Action = askedAgain
			}
			known = true // two of them may be decided together
		}
		data.Proof = proofOf(ev)
		lines = append(lines, Line{document.AuditPlace{Decided: last.UnixNano(), Stream: stream, Seq: e.Seq, Index: i}, cloudEvent(ev, data)})
	}
	return lines
}

// Chains returns an Audit of the journals of a scope.
func Chains(scope forge.Key) *chain.Audit {
	return chain.NewAudit(func(subject string) bool { return covers(scope, subject) })
}

// covers reports whether a journal is one of a scope.
func covers(scope forge.Key, subject string) bool {
	key, err := subjects.ParseJournal(subject)
	if err != nil || scope.Project != "" && key.Project != scope.Project {
		return false
	}
	return scope.Intent == "" || key.IsProject() || key.Intent == scope.Intent
}

// Pager keeps the newest lines that a request wants, of all that it is given.
type Pager struct {
	req   document.AuditRequest
	after document.AuditPlace
	lines []Line
}

// NewPager returns a Pager for a request that was checked.
func NewPager(req document.AuditRequest) (*Pager, error) {
	after, err := document.ParseAuditPlace(req.After)
	return &Pager{req: req, after: after}, err
}

// Add takes the lines of an entry.
func (p *Pager) Add(lines []Line) {
	for i := range lines {
		if l := &lines[i]; Compare(l.Place, p.after) < 0 && p.req.Wants(&l.Event.Data, l.Event.Time) {
			p.lines = append(p.lines, *l)
		}
	}
	if len(p.lines) > 2*p.req.Limit+len(lines) {
		p.keep()
	}
}

// keep leaves the newest lines, the newest first: one more than the page has,
// by which it is known that there are more.
func (p *Pager) keep() {
	slices.SortFunc(p.lines, func(a, b Line) int { return Compare(b.Place, a.Place) })
	p.lines = p.lines[:min(len(p.lines), p.req.Limit+1)]
}

// Page returns the answer, with what was found of the chains.
func (p *Pager) Page(r *Reader) document.Audit {
	p.keep()
	a := document.Audit{Events: []document.CloudEvent[document.Audited]{}, Newer: r.Newer}
	for i := range p.lines {
		if i == p.req.Limit || !a.Add(p.lines[i].Event) {
			a.Next = p.lines[i-1].Place.String()
			break
		}
	}
	a.Chain = document.AuditChain{Whole: true, Findings: []document.AuditFinding{}}
	a.Chain.Journals, a.Chain.Records = r.Chains.Count()
	for _, f := range r.Chains.Findings() {
		a.Chain.Whole = a.Chain.Whole && !f.Breaks()
		a.Chain.Find(document.AuditFinding{Kind: string(f.Kind), Journal: f.Journal, Sequence: f.Seq, Detail: f.Detail, Hint: f.Hint})
	}
	return a
}
