package chain

import "fmt"

// Walk follows the messages of one journal from its first one on, in their order.
type Walk struct {
	// subject is the journal's.
	subject string
	// head is the end so far, with the first break.
	head Head
}

// NewWalk returns a Walk that has seen no message yet.
func NewWalk(subject string) *Walk { return &Walk{subject: subject} }

// WalkFrom returns a Walk that goes on behind a message of the journal.
func WalkFrom(subject string, seq uint64, payload []byte) *Walk {
	w := NewWalk(subject)
	w.Other(seq, payload)
	return w
}

// Head returns the end of the journal as far as it was seen.
func (w *Walk) Head() Head { return w.head }

// Record takes the next record: its sequence, what it carries as the hash of the
// message before it, and its whole payload. It returns the break if there is one right
// before the record, and goes on with the record as it is, so that a later break is
// found as well.
func (w *Walk) Record(seq uint64, previous string, payload []byte) *Break {
	found := w.Follows(seq, previous)
	if found != nil && w.head.Broken == nil {
		w.head.Broken = found
	}
	w.Other(seq, payload)
	return found
}

// Follows returns the break that there would be before a record with this hash;
// nil if it can be the next one.
func (w *Walk) Follows(seq uint64, previous string) *Break {
	reason := w.wrong(previous)
	if reason == "" {
		return nil
	}
	return &Break{Seq: seq, Before: w.head.Seq, Reason: reason}
}

// Other takes the next message, which is no record. No decision is in it, but the record after
// it carries its hash: what was once between records stays visible.
func (w *Walk) Other(seq uint64, payload []byte) {
	w.head.Seq, w.head.Hash = seq, Of(w.subject, payload)
}

// wrong says why a record with this hash cannot be the next one; empty if it can.
func (w *Walk) wrong(previous string) string {
	got, err := ParseHash(previous)
	first := w.head.Seq == 0
	switch {
	case previous == "":
		return "it carries no hash of the message before it, so no runner wrote it"
	case err != nil:
		return "what it carries as the hash of the message before it is none"
	case got == w.head.Next(w.subject):
		return ""
	case first:
		return "the journal does not begin with it: messages before it were removed, or it was written for another journal"
	case got == Start(w.subject):
		return fmt.Sprintf("it was written as the first of its journal, and now stands behind message %d: messages before it were added or moved", w.head.Seq)
	}
	return fmt.Sprintf("it was not written behind message %d, which stands before it now: that one was changed or added, "+
		"or others between them were removed or moved", w.head.Seq)
}
