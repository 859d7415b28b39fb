package journal

import (
	"context"
	"errors"
	"fmt"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/internal/conn"
	"github.com/pfl-forge/pfl-forge/bus/internal/wire"
	"github.com/pfl-forge/pfl-forge/bus/journal/chain"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
)

// Summaries returns the summaries of every intent of a project, or of all
// projects if it is empty, in the order of their keys.
func (j *Journal) Summaries(ctx context.Context, project forge.ProjectID) ([]forge.Summary, error) {
	filter, err := subjects.IntentJournals(project)
	if err != nil {
		return nil, fmt.Errorf("list intents: %w", err)
	}
	list, _, err := j.lastSummaries(ctx, filter)
	return list, err
}

// List is Summaries of one project, with the sequence of the last message of every
// intent's journal as Sequences returns it: both from one look, since reading the
// last messages of thousands of journals is most of what a list costs.
func (j *Journal) List(ctx context.Context, project forge.ProjectID) ([]forge.Summary, map[forge.IntentID]uint64, error) {
	filter, err := subjects.IntentJournals(project)
	if err != nil {
		return nil, nil, fmt.Errorf("list intents: %w", err)
	}
	list, found, err := j.lastSummaries(ctx, filter)
	if err != nil {
		return nil, nil, err
	}
	last, err := sequencesOf(found)
	return list, last, err
}

// Intents returns the intents of a project that have a journal, sorted. It reads no message.
func (j *Journal) Intents(ctx context.Context, project forge.ProjectID) ([]forge.IntentID, error) {
	filter, err := subjects.IntentJournals(project)
	if err != nil {
		return nil, fmt.Errorf("list intents: %w", err)
	}
	found, err := j.conn.Subjects(ctx, journalStream(filter), filter)
	if err != nil {
		return nil, fmt.Errorf("list intents: %w", err)
	}
	list := make([]forge.IntentID, 0, len(found))
	for _, s := range found {
		key, err := subjects.ParseJournal(s)
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", s, err)
		}
		list = append(list, key.Intent)
	}
	return list, nil
}

// ProjectSummaries is Summaries for projects.
func (j *Journal) ProjectSummaries(ctx context.Context, project forge.ProjectID) ([]forge.Summary, error) {
	filter, err := subjects.ProjectJournals(project)
	if err != nil {
		return nil, fmt.Errorf("list projects: %w", err)
	}
	list, _, err := j.lastSummaries(ctx, filter)
	return list, err
}

// Projects returns the projects that have a journal, sorted. It reads no message.
func (j *Journal) Projects(ctx context.Context) ([]forge.ProjectID, error) {
	filter, err := subjects.ProjectJournals("")
	if err != nil {
		return nil, fmt.Errorf("list projects: %w", err)
	}
	found, err := j.conn.Subjects(ctx, journalStream(filter), filter)
	if err != nil {
		return nil, fmt.Errorf("list projects: %w", err)
	}
	var list []forge.ProjectID
	for _, s := range found {
		if key, err := subjects.ParseJournal(s); err == nil {
			list = append(list, key.Project)
		}
	}
	return list, nil
}

// Summary returns the summary of one machine, as of its last decision, or
// ErrNotFound.
func (j *Journal) Summary(ctx context.Context, key forge.Key) (forge.Summary, error) {
	subject, err := subjects.Journal(key)
	if err != nil {
		return forge.Summary{}, fmt.Errorf("read summary: %w", err)
	}
	m, err := j.conn.Last(ctx, journalStream(subject), subject)
	if err != nil {
		return forge.Summary{}, err
	}
	return j.summaryOf(ctx, m)
}

// Wanted reports whether the result of an intent's attempt would still be
// decided on. Whoever has a command asks before it starts an agent.
func (j *Journal) Wanted(ctx context.Context, intent forge.Key, a forge.Attempt) (bool, error) {
	r := forge.Result{To: intent, Attempt: a}
	s, err := j.Summary(ctx, r.Machine())
	if errors.Is(err, conn.ErrNotFound) {
		return false, nil
	}
	return s.Wants(a), err
}

// Sequences returns the sequence of the last message of every intent's journal in a project.
func (j *Journal) Sequences(ctx context.Context, project forge.ProjectID) (map[forge.IntentID]uint64, error) {
	filter, err := subjects.IntentJournals(project)
	if err != nil {
		return nil, fmt.Errorf("list intents: %w", err)
	}
	found, err := j.conn.Lasts(ctx, journalStream(filter), filter)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", filter, err)
	}
	return sequencesOf(found)
}

// sequencesOf returns the sequences of the last messages of journals, by intent.
func sequencesOf(found []conn.Stored) (map[forge.IntentID]uint64, error) {
	last := make(map[forge.IntentID]uint64, len(found))
	for _, m := range found {
		key, err := subjects.ParseJournal(m.Subject)
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", m.Subject, err)
		}
		last[key.Intent] = m.Seq
	}
	return last, nil
}

// lastSummaries returns the newest summary of each intent whose subject the filter matches,
// and the last messages of all that match. An intent without a readable record is left out;
// that it cannot be fetched is an error, because a list without it would look complete.
func (j *Journal) lastSummaries(ctx context.Context, filter string) (list []forge.Summary, found []conn.Stored, err error) {
	found, err = j.conn.Lasts(ctx, journalStream(filter), filter)
	if err != nil {
		return nil, nil, fmt.Errorf("list %s: %w", filter, err)
	}
	list = make([]forge.Summary, 0, len(found))
	for _, m := range found {
		s, err := j.summaryOf(ctx, m)
		if errors.Is(err, conn.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, nil, fmt.Errorf("list %s: %w", m.Subject, err)
		}
		list = append(list, s)
	}
	return list, found, nil
}

// summaryOf reads the summary of a journal's last message. Where that is garbage,
// it is put among the dead letters, and the record before it counts; ErrNotFound
// means that there is none.
func (j *Journal) summaryOf(ctx context.Context, last conn.Stored) (forge.Summary, error) {
	s, err := last.Summary()
	if _, ok := errors.AsType[*wire.GarbageError](err); !ok {
		return s, err
	}
	// What is set aside counts as if it were not there: the mark stands right
	// behind it, and leads back to the record before. A message of a newer
	// version in between is no error if one follows that can be read.
	type place struct {
		summary forge.Summary
		found   bool
		hash    chain.Hash
		err     error
	}
	var before, now place
	_, err = j.there(ctx, last.Subject, 0, func(m conn.Stored) error {
		if a := readAside(m); a != nil {
			if a.Hash == now.hash {
				now = before
			}
			return nil
		}
		one, err := m.Summary()
		if _, ok := errors.AsType[*wire.GarbageError](err); ok {
			return j.bury(ctx, m, err)
		}
		before, now = now, place{one, err == nil, chain.Of(m.Subject, m.Data), err}
		return nil
	})
	s, found := now.summary, now.found
	if err == nil {
		err = now.err
	}
	if err == nil && !found {
		return s, fmt.Errorf("read %s: %w", last.Subject, conn.ErrNotFound)
	}
	return s, err
}
