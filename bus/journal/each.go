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

// Entry is a message of a journal.
type Entry struct {
	chain.Link

	// Key is the machine's.
	Key forge.Key
	// Previous is the hash of the message before it, as the message carries it.
	// Empty if it carries none.
	Previous string
	// Record is the message as a record; nil if it is none, or one that only a
	// newer version understands.
	Record *forge.Record
}

// Each calls do with every message of the journals of a project, or of all projects if the
// scope is empty; with an intent, of that intent and of its project. First come those of
// projects, then those of intents, each journal in its order, and last those of projects
// that were written meanwhile, as late ones. The newest message of a journal comes when it
// is known that nothing sets it aside: after newer ones of others. It changes nothing, and
// needs no more than the right to read. An error of do ends Each with that error.
func (j *Journal) Each(ctx context.Context, scope forge.Key, do func(*Entry) error) error {
	intents, err := subjects.IntentJournals(scope.Project)
	if err == nil && scope.Intent != "" {
		intents, err = subjects.Journal(scope)
	}
	if err != nil {
		return fmt.Errorf("read journals: %w", err)
	}
	projects, err := subjects.ProjectJournals(scope.Project)
	if err != nil {
		return fmt.Errorf("read journals: %w", err)
	}
	r := reading{journal: j, walks: map[string]*chain.Walk{}, do: do}
	// A message names another one only after that was stored. So whatever a message of a
	// project names is found among the intents' that are read after it; and for what those
	// name, the projects' are read once more.
	read, err := r.all(ctx, projects, 0)
	if err == nil {
		_, err = r.all(ctx, intents, 0)
	}
	if r.late = true; err == nil {
		_, err = r.all(ctx, projects, read)
	}
	return err
}

// reading is one call of Each.
type reading struct {
	journal *Journal
	// walks follow the chains of the journals, by their subjects.
	walks map[string]*chain.Walk
	// do is called with each message.
	do func(*Entry) error
	// late is Link.Late of the messages that are read now.
	late bool
}

// all reads the messages of a filter after a sequence, at least those that are
// there now, and returns the sequence of the last one.
func (r *reading) all(ctx context.Context, filter string, after uint64) (uint64, error) {
	late := hold(func(m conn.Stored, by *Aside) error { return r.take(m, by) })
	after, err := r.journal.there(ctx, filter, after, late.next)
	if err == nil {
		err = late.end()
	}
	if err != nil {
		return after, fmt.Errorf("read %s: %w", filter, err)
	}
	return after, nil
}

// there calls do with the messages of a filter after a sequence, at least those
// that are there now, and returns the sequence of the last one, also with an error.
func (j *Journal) there(ctx context.Context, filter string, after uint64, do func(conn.Stored) error) (uint64, error) {
	newest, err := j.conn.Last(ctx, journalStream(filter), filter)
	if errors.Is(err, conn.ErrNotFound) {
		return after, nil
	}
	if err != nil {
		return after, err
	}
	for attempt := 0; ; attempt++ {
		last, err := j.conn.EachAfter(ctx, after, journalStream(filter), filter, do)
		after = max(after, last)
		if err != nil || after >= newest.Seq {
			return after, err
		}
		if err := conn.Sleep(ctx, conn.Backoff(attempt)); err != nil { // a replica answered that is behind
			return after, fmt.Errorf("no replica has message %d: %w", newest.Seq, err)
		}
	}
}

// Records calls do with the records of the intents of a project behind a sequence, or
// of all projects if it is empty: at least with those that are there now, each journal
// in its order. It returns the sequence to go on behind, also with an error, such as
// that of a context that has ended: everything up to there was handed on, unless it is
// garbage or set aside. That sequence is 0 where it cannot be gone on, because a record
// takes a newer version. It changes nothing, and needs no more than the right to read.
func (j *Journal) Records(ctx context.Context, project forge.ProjectID, after uint64, do func(forge.Key, *forge.Record)) (uint64, error) {
	filter, err := subjects.IntentJournals(project)
	if err != nil {
		return 0, fmt.Errorf("read journals: %w", err)
	}
	return j.records(ctx, filter, after, do)
}

// ProjectRecords is Records for what projects have decided themselves.
func (j *Journal) ProjectRecords(ctx context.Context, project forge.ProjectID, after uint64, do func(forge.Key, *forge.Record)) (uint64, error) {
	filter, err := subjects.ProjectJournals(project)
	if err != nil {
		return 0, fmt.Errorf("read journals: %w", err)
	}
	return j.records(ctx, filter, after, do)
}

func (j *Journal) records(ctx context.Context, filter string, after uint64, do func(forge.Key, *forge.Record)) (uint64, error) {
	var failed error
	late := hold(func(m conn.Stored, by *Aside) error {
		failed = errors.Join(failed, handOn(m, by, do))
		return failed
	})
	after, err := j.there(ctx, filter, after, late.next)
	if failed == nil {
		err = errors.Join(err, late.end()) // also what waits when it ends early: no one comes back for it
	}
	if failed != nil {
		after = 0
	}
	if err != nil {
		return after, fmt.Errorf("read %s: %w", filter, err)
	}
	return after, nil
}

// handOn calls do with a message that is a record, and is not set aside.
func handOn(m conn.Stored, by *Aside, do func(forge.Key, *forge.Record)) error {
	if by != nil || readAside(m) != nil {
		return nil
	}
	rec, err := readRecord(m)
	if _, garbage := errors.AsType[*wire.GarbageError](err); garbage {
		return nil
	}
	if err != nil {
		return err
	}
	key, err := subjects.ParseJournal(m.Subject)
	if err != nil {
		return err
	}
	do(key, &rec)
	return nil
}

// take hands a message on, with its place in the chain of its journal, and the
// mark by which it is set aside.
func (r *reading) take(m conn.Stored, by *Aside) error {
	key, err := subjects.ParseJournal(m.Subject)
	if err != nil {
		return err
	}
	walk := r.walks[m.Subject]
	if walk == nil {
		walk = chain.NewWalk(m.Subject)
		r.walks[m.Subject] = walk
	}
	e := Entry{Key: key, Link: chain.Link{Late: r.late}}
	rec, err := readRecord(m)
	mark := readAside(m)
	switch _, newer := errors.AsType[*wire.UnknownError](err); {
	case mark != nil:
		e.Other = fmt.Sprintf("%s set message %d aside: %s", mark.By, mark.Seq, mark.Why)
	case by != nil:
		e.Other = fmt.Sprintf("%s has set it aside: %s", by.By, by.Why)
	case err == nil:
		e.Record, e.Previous, e.Anchors = &rec, rec.Previous, anchorsOf(&rec)
	case newer: // its chain can be followed all the same, and so can that of those which it has heard of
		known := wire.ReadKnown(m.Data)
		e.Previous, e.Anchors = wire.ReadPrevious(m.Data), anchorsOf(&known)
	default:
		e.Other = err.Error()
	}
	if e.Other != "" {
		walk.Other(m.Seq, m.Data)
	} else {
		e.Broken = walk.Record(m.Seq, e.Previous, m.Data)
	}
	head := walk.Head()
	e.Ref = chain.Ref{Subject: m.Subject, Seq: m.Seq, Hash: head.Hash}
	return r.do(&e)
}

// anchorsOf returns which messages of other journals a record names.
func anchorsOf(rec *forge.Record) (list []string) {
	for i := range rec.Events {
		if anchor := rec.Events[i].Anchor; anchor != "" {
			list = append(list, anchor)
		}
	}
	return list
}
