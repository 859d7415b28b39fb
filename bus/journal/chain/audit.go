package chain

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Link is a message of a journal as an Audit takes it.
type Link struct {
	// Ref names the message, with its hash.
	Ref
	// Broken is the break that Walk found right before it; nil if it follows
	// from the message before it.
	Broken *Break
	// Other says why it is no record; empty if it is one.
	Other string
	// Anchors are those of its events.
	Anchors []string
	// Late says that it was read so that anchors which were read before it are found. Its own
	// may name messages that nothing has read.
	Late bool
}

// Kind says what a Finding found.
type Kind string

// The kinds of findings.
const (
	// Broken: a record does not follow from the message before it.
	Broken Kind = "broken"
	// Missing: a message that another journal or a checkpoint names is not in its journal.
	Missing Kind = "missing"
	// Foreign: a message that is no record. It has no effect.
	Foreign Kind = "foreign"
)

// Finding says what is wrong with a journal.
type Finding struct {
	// Kind is Broken, Missing or Foreign. Foreign is none of the journal's proof, and breaks
	// nothing.
	Kind Kind `json:"kind"`
	// Journal is its subject.
	Journal string `json:"journal"`
	// Seq is the sequence of the message, as far as it is known where it is.
	Seq uint64 `json:"sequence"`
	// Detail says what is wrong, for a person.
	Detail string `json:"detail"`
	// Hint says what to do.
	Hint string `json:"hint"`
}

// Breaks reports whether the journals do not prove what they hold.
func (f *Finding) Breaks() bool { return f.Kind != Foreign }

// What to do about findings.
const (
	hintBroken = "nothing is decided on it any more: find out who may write to the stream, and restore it from a backup of before"
	hintGone   = "find out who may write to the stream, and restore it from a backup of before"
	hintOther  = "it has no effect; find out who may write to the stream"
)

// Audit follows many journals: their chains, and what they say of one another.
type Audit struct {
	// covers reports whether a journal is read as a whole.
	covers func(subject string) bool
	// journals are those that were read, by their subjects.
	journals map[string]*book
	// findings are those that a single message shows.
	findings []Finding
	// wanted has every message that another journal or a checkpoint names. They are
	// looked for at the end, because the witness may be read before what it names.
	wanted []witness
}

// book is a journal as far as an Audit has read it.
type book struct {
	// head is the last message.
	head Ref
	// records counts the messages that are records.
	records int
	// known has the hashes of all messages.
	known map[Hash]struct{}
}

// witness names one who knows a message.
type witness struct {
	// ref is the message that has to be in its journal.
	ref Ref
	// by names the witness, for a person.
	by string
}

// NewAudit returns an Audit of the journals that are read as a whole. Anchors of others are not
// followed.
func NewAudit(covers func(subject string) bool) *Audit {
	return &Audit{covers: covers, journals: map[string]*book{}}
}

// Add takes a message. The messages of each journal come in their order.
func (a *Audit) Add(l *Link) {
	b := a.journals[l.Subject]
	if b == nil {
		b = &book{known: map[Hash]struct{}{}}
		a.journals[l.Subject] = b
	}
	b.head = l.Ref
	b.known[l.Hash] = struct{}{}
	if l.Other != "" {
		a.findings = append(a.findings, Finding{Foreign, l.Subject, l.Seq, "it is no record: " + l.Other, hintOther})
		return
	}
	b.records++
	if l.Broken != nil {
		a.findings = append(a.findings, Finding{Broken, l.Subject, l.Seq, l.Broken.Reason, hintBroken})
	}
	if l.Late {
		return
	}
	for _, text := range l.Anchors {
		ref, err := ParseRef(text)
		if err != nil {
			a.findings = append(a.findings, Finding{Broken, l.Subject, l.Seq, "the anchor of its event cannot be read: " + err.Error(), hintBroken})
			continue
		}
		a.wanted = append(a.wanted, witness{ref, fmt.Sprintf("message %d of %s", l.Seq, l.Subject)})
	}
}

// Compare has the Audit look for the ends of journals as they once were.
func (a *Audit) Compare(c *Checkpoint) {
	for _, ref := range c.Heads {
		a.wanted = append(a.wanted, witness{ref, "the checkpoint of " + c.At.UTC().Format("2006-01-02T15:04:05Z")})
	}
}

// Findings returns the breaks, the messages that are missing and those that are no
// records, by journal and sequence. Of a journal that misses several messages it
// returns one finding, about the first of them.
func (a *Audit) Findings() []Finding {
	list := slices.Clone(a.findings)
	type loss struct {
		first witness
		count int
	}
	lost := map[string]*loss{}
	for _, w := range a.wanted {
		if !a.covers(w.ref.Subject) {
			continue
		}
		if b := a.journals[w.ref.Subject]; b != nil {
			if _, ok := b.known[w.ref.Hash]; ok {
				continue
			}
		}
		one := lost[w.ref.Subject]
		if one == nil {
			one = &loss{first: w}
			lost[w.ref.Subject] = one
		}
		if one.count++; w.ref.Seq < one.first.ref.Seq {
			one.first = w
		}
	}
	for subject, one := range lost {
		list = append(list, Finding{Missing, subject, one.first.ref.Seq, a.missing(&one.first, one.count), hintGone})
	}
	slices.SortStableFunc(list, func(x, y Finding) int {
		return cmp.Or(strings.Compare(x.Journal, y.Journal), cmp.Compare(x.Seq, y.Seq), strings.Compare(string(x.Kind), string(y.Kind)))
	})
	return list
}

// missing says what became of a message that others know, and how many such there are.
func (a *Audit) missing(first *witness, count int) string {
	what := fmt.Sprintf("%s knows its message %d with another content: messages were changed, or removed and written anew", first.by, first.ref.Seq)
	b := a.journals[first.ref.Subject]
	switch {
	case b == nil:
		what = fmt.Sprintf("%s knows its message %d, and the whole journal is gone", first.by, first.ref.Seq)
	case b.head.Seq < first.ref.Seq:
		what = fmt.Sprintf("%s knows its message %d, and now the journal ends at %d: its end was removed", first.by, first.ref.Seq, b.head.Seq)
	}
	if count > 1 {
		what += fmt.Sprintf("; %d more messages that others know are missing", count-1)
	}
	return what
}

// Heads returns the ends of the journals, sorted by their subjects.
func (a *Audit) Heads() []Ref {
	list := make([]Ref, 0, len(a.journals))
	for _, subject := range slices.Sorted(maps.Keys(a.journals)) {
		list = append(list, a.journals[subject].head)
	}
	return list
}

// Count returns how many journals there are, and how many records they have together.
func (a *Audit) Count() (journals, records int) {
	for _, b := range a.journals {
		records += b.records
	}
	return len(a.journals), records
}
