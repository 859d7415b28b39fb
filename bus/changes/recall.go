package changes

import (
	"context"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/internal/conn"
	"github.com/pfl-forge/pfl-forge/bus/internal/streams"
	"github.com/pfl-forge/pfl-forge/document"
)

// knownIntent keeps the last state of an intent in memory.
type knownIntent struct {
	last   forge.Summary
	origin document.Origin
}

// recall returns an intent and its state before a record; the state is nil if
// the record is the first.
func (r *publishing) recall(ctx context.Context, key forge.Key, m conn.Stored, now *forge.Summary) (*knownIntent, *forge.Summary, error) {
	if k := r.known[key]; k != nil {
		return k, &k.last, nil
	}
	if now.Run <= 1 && now.TaskCount+len(now.Children) == 0 {
		if k, ok := firstRecord(m); ok {
			return k, nil, nil
		}
	}
	first, err := r.one(ctx, &conn.Query{Seq: 1, Batch: 1, Next: m.Subject})
	if err != nil {
		return nil, nil, err
	}
	k, _ := firstRecord(first)
	if first.Seq == m.Seq {
		return k, nil, nil
	}
	last, err := r.one(ctx, &conn.Query{Lasts: []string{m.Subject}, UpTo: m.Seq - 1, Batch: 1})
	if err != nil {
		return nil, nil, err
	}
	if k.last, err = last.Summary(); err != nil {
		return nil, nil, err
	}
	return k, &k.last, nil
}

// firstRecord returns the origin of an intent from its journal's first record;
// false if the record is not that.
func firstRecord(m conn.Stored) (*knownIntent, bool) {
	rec, err := m.Record()
	if err != nil || len(rec.Events) == 0 {
		return &knownIntent{}, false
	}
	submit := forge.As[*forge.Submit](rec.Events[0].Message)
	if submit == nil {
		return &knownIntent{}, false
	}
	o := submit.Intent.Origin
	return &knownIntent{origin: document.Origin{System: document.Cut(o.System), EventID: document.Cut(o.EventID), Actor: document.Cut(o.Actor)}}, true
}

// one returns the message of the journal that a request finds. Error:
// ErrNotFound.
func (r *publishing) one(ctx context.Context, q *conn.Query) (m conn.Stored, err error) {
	err = conn.Patiently(ctx, func(ctx context.Context) error {
		_, err := r.changes.conn.Get(ctx, streams.Journal, q, func(found conn.Stored) error {
			m = found
			return nil
		})
		return err
	})
	if err == nil && m.Seq == 0 {
		err = conn.ErrNotFound // a replica answered that is behind
	}
	return m, err
}

// remember keeps the state of an intent for its next record. An intent that
// ended is forgotten, and in place of one too many any other is.
func (r *publishing) remember(key forge.Key, k *knownIntent, now forge.Summary) {
	if now.Idle && now.Status.Ended() {
		delete(r.known, key)
		return
	}
	if len(r.known) >= remembered {
		for other := range r.known {
			delete(r.known, other)
			break
		}
	}
	k.last = now
	r.known[key] = k
}
