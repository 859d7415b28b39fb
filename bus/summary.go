package bus

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	forge "github.com/pfl-forge/pfl-forge"
	forgev1 "github.com/pfl-forge/pfl-forge/proto/forge/v1"
)

// Summaries returns what lists show of every intent of a project, or of all
// projects if it is empty, in the order of their keys.
func (b *Bus) Summaries(ctx context.Context, project forge.ProjectID) ([]forge.Summary, error) {
	filter, err := intentJournals(project)
	if err != nil {
		return nil, fmt.Errorf("list intents: %w", err)
	}
	return b.lastSummaries(ctx, filter)
}

// ProjectSummaries is Summaries for projects.
func (b *Bus) ProjectSummaries(ctx context.Context, project forge.ProjectID) ([]forge.Summary, error) {
	filter, err := projectJournals(project)
	if err != nil {
		return nil, fmt.Errorf("list projects: %w", err)
	}
	return b.lastSummaries(ctx, filter)
}

// Summary returns what lists show of one machine, as of its last decision, or
// ErrNotFound.
func (b *Bus) Summary(ctx context.Context, key forge.Key) (forge.Summary, error) {
	subject, err := journalSubject(key)
	if err != nil {
		return forge.Summary{}, fmt.Errorf("read summary: %w", err)
	}
	m, err := b.last(ctx, journalStream(subject), subject)
	if err != nil {
		return forge.Summary{}, err
	}
	return b.summaryOf(ctx, m)
}

// Wanted reports whether the result of an intent's attempt would still be
// decided on. Whoever has a command asks before it starts an agent.
func (b *Bus) Wanted(ctx context.Context, intent forge.Key, a forge.Attempt) (bool, error) {
	r := forge.Result{To: intent, Attempt: a}
	s, err := b.Summary(ctx, r.Machine())
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	return s.Wants(a), err
}

func (b *Bus) lastSummaries(ctx context.Context, filter string) ([]forge.Summary, error) {
	found, err := b.lasts(ctx, journalStream(filter), filter)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", filter, err)
	}
	list := make([]forge.Summary, 0, len(found))
	for _, m := range found {
		s, err := b.summaryOf(ctx, m)
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", m.Subject, err)
		}
		list = append(list, s)
	}
	return list, nil
}

// summaryOf reads the summary of a journal's last message. Where that is garbage,
// it is put among the dead letters, and the record before it counts; ErrNotFound
// means that there is none.
func (b *Bus) summaryOf(ctx context.Context, last stored) (forge.Summary, error) {
	s, err := readSummary(last.Data)
	if _, ok := errors.AsType[*GarbageError](err); !ok {
		return s, err
	}
	found := false
	_, err = b.each(ctx, journalStream(last.Subject), last.Subject, func(m stored) error {
		one, err := readSummary(m.Data)
		if _, ok := errors.AsType[*GarbageError](err); ok {
			return b.bury(ctx, journalStream(m.Subject), m, err.Error())
		}
		if err == nil {
			s, found = one, true
		}
		return err
	})
	if err == nil && !found {
		return s, fmt.Errorf("read %s: %w", last.Subject, ErrNotFound)
	}
	return s, err
}

var summaryField = (&forgev1.Record{}).ProtoReflect().Descriptor().Fields().ByName("summary").Number()

// readSummary decodes nothing of a record but its summary, which is a small part
// of it.
func readSummary(record []byte) (forge.Summary, error) {
	var summary []byte
	for rest := record; len(rest) > 0; {
		number, typ, n := protowire.ConsumeTag(rest)
		if n < 0 {
			return forge.Summary{}, garbage("Record", "%w", protowire.ParseError(n))
		}
		value := rest[n:]
		size := protowire.ConsumeFieldValue(number, typ, value)
		if size < 0 {
			return forge.Summary{}, garbage("Record", "%w", protowire.ParseError(size))
		}
		if number == summaryField && typ == protowire.BytesType {
			summary, _ = protowire.ConsumeBytes(value)
		}
		rest = value[size:]
	}
	if summary == nil {
		return forge.Summary{}, garbage("Record", "summary is missing")
	}
	return summaries.Unmarshal(summary)
}
