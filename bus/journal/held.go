package journal

import (
	"cmp"
	"maps"
	"slices"

	"github.com/pfl-forge/pfl-forge/bus/internal/conn"
	"github.com/pfl-forge/pfl-forge/bus/journal/chain"
)

// held has the messages of journals come one later than they are read, each with the mark by
// which it is set aside. A mark stands directly behind its message in the same subject, so
// that the next message of a journal, or its end, tells, and nothing is read twice. Whoever
// goes by it passes over the same messages, whether it would understand them or not.
type held struct {
	// take is called with each message, in the order of its journal. by is nil
	// unless the message is set aside.
	take func(m conn.Stored, by *Aside) error
	// waits has the newest message of each subject.
	waits map[string]conn.Stored
}

// hold returns a held before the first message.
func hold(take func(m conn.Stored, by *Aside) error) *held {
	return &held{take: take, waits: map[string]conn.Stored{}}
}

// next takes a message, and hands on the one before it in its journal.
func (h *held) next(m conn.Stored) error {
	before, waited := h.waits[m.Subject]
	h.waits[m.Subject] = m
	if !waited {
		return nil
	}
	return h.take(before, markOf(before, m))
}

// end hands on the last message of each journal, in the order in which they were stored.
func (h *held) end() error {
	last := slices.SortedFunc(maps.Values(h.waits), func(a, b conn.Stored) int { return cmp.Compare(a.Seq, b.Seq) })
	clear(h.waits)
	for _, m := range last {
		if err := h.take(m, nil); err != nil {
			return err
		}
	}
	return nil
}

// markOf returns the next message of a journal if it sets a message aside; nil if
// it does not. A mark of another message, or of other bytes, sets nothing aside.
func markOf(m, next conn.Stored) *Aside {
	a := readAside(next)
	if a == nil || a.Seq != m.Seq || a.Hash != chain.Of(m.Subject, m.Data) {
		return nil
	}
	return a
}
