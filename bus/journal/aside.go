package journal

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/internal/conn"
	"github.com/pfl-forge/pfl-forge/bus/internal/wire"
	"github.com/pfl-forge/pfl-forge/bus/journal/chain"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
	"github.com/pfl-forge/pfl-forge/messages"
)

// Aside is a message of a journal by which an operator has said that the message
// before it decides nothing. It is no record: the chain goes over both as over
// other messages that are none, so the bytes stay, and so does who said it.
type Aside struct {
	// Seq and Hash name the message that is set aside; a mark of another
	// message, or of other bytes, has no effect.
	Seq  uint64     `json:"sequence"`
	Hash chain.Hash `json:"hash"`
	// By names the person who set it aside, Why gives the reason; both are for people.
	By  string    `json:"by"`
	Why string    `json:"why"`
	At  time.Time `json:"at"`
}

// asideStart begins the payload of an Aside. No record begins so: to protobuf
// it is a group that is not closed.
const asideStart = `{"set_aside":`

// asideMessage is an Aside as it is stored.
type asideMessage struct {
	SetAside *Aside `json:"set_aside"`
}

// readAside returns a message as an Aside, or nil.
func readAside(m conn.Stored) *Aside {
	if m.Relayed || !bytes.HasPrefix(m.Data, []byte(asideStart)) {
		return nil
	}
	var a asideMessage
	if json.Unmarshal(m.Data, &a) != nil {
		return nil
	}
	return a.SetAside
}

// Trouble is a message of a journal for which nothing is decided on its machine any more.
type Trouble struct {
	// Key is the machine's.
	Key  forge.Key
	Seq  uint64
	Hash chain.Hash
	// Reason says what is wrong with it and where, for a person.
	Reason string
	// Loose says that it can be set aside.
	//
	// The journal ends with it and no other journal names it, so that nothing was
	// decided on top of it. And it is this message that is wrong, not one before
	// it: where a hash is there and does not fit, it cannot be told which of the
	// two it is, and without this one a message that was altered would count.
	Loose bool
	// Words are those of people in it, each with who said it: they do not count
	// when it is set aside, and have to be said again.
	Words []string
}

// wordsIn lists the words of people that were decided on in a record. Those of other machines
// of the project come again by themselves, and name the journal that they come from.
func wordsIn(rec forge.Record) (list []string) {
	for i := range rec.Events {
		ev := &rec.Events[i]
		for _, spec := range messages.All() {
			if spec.Verb != "" && ev.Anchor == "" && reflect.TypeOf(spec.Message) == reflect.TypeOf(ev.Message) {
				list = append(list, cmp.Or(ev.Actor, "a person")+": "+spec.Verb)
			}
		}
	}
	return list
}

// Troubles returns the messages of a machine's journal that hold it up, in
// order: those that only a newer version understands, and those that do not
// follow from the message before them. It changes nothing.
func (j *Journal) Troubles(ctx context.Context, key forge.Key) ([]Trouble, error) {
	subject, err := subjects.Journal(key)
	if err != nil {
		return nil, fmt.Errorf("examine journal: %w", err)
	}
	var list []Trouble
	walk := chain.NewWalk(subject)
	late := hold(func(m conn.Stored, by *Aside) error {
		_, err := readRecord(m)
		_, garbage := errors.AsType[*wire.GarbageError](err)
		previous := wire.ReadPrevious(m.Data)
		at := walk.Follows(m.Seq, previous)
		walk.Other(m.Seq, m.Data)
		t := Trouble{Key: key, Seq: m.Seq, Hash: walk.Head().Hash}
		switch {
		case by != nil || garbage || err == nil && at == nil: // neither holds anything up, nor does a mark
			return nil
		case err != nil: // of a newer version, or nothing but a wrong chain
			t.Reason, t.Loose = fmt.Sprintf("message %d is not for this version: %v", m.Seq, err), at == nil
		default:
			_, malformed := chain.ParseHash(previous)
			t.Reason, t.Loose = at.Error(), malformed != nil
		}
		t.Words = wordsIn(wire.ReadKnown(m.Data))
		list = append(list, t)
		return nil
	})
	last, err := j.conn.Each(ctx, journalStream(subject), subject, late.next)
	if err == nil {
		err = late.end()
	}
	if err != nil {
		return nil, fmt.Errorf("examine journal of %s: %w", key, err)
	}
	for i := range list {
		t := &list[i]
		if t.Loose = t.Loose && t.Seq == last; t.Loose {
			if t.Loose, err = j.unanswered(ctx, chain.Ref{Subject: subject, Seq: t.Seq, Hash: t.Hash}, key); err != nil {
				return nil, err
			}
		}
	}
	return list, nil
}

// unanswered reports whether no journal of the project has decided on anything
// that a message of one of them sent. A machine names the last record of its own
// journal in all that it sends to another one, so the other journal shows it.
func (j *Journal) unanswered(ctx context.Context, ref chain.Ref, key forge.Key) (bool, error) {
	name, heard := ref.String(), false
	err := j.Each(ctx, forge.Key{Project: key.Project}, func(e *Entry) error {
		heard = heard || slices.Contains(e.Anchors, name)
		return nil
	})
	return !heard, err
}

// SetAside stores that a message decides nothing, if it is loose and the
// journal still ends with it; otherwise it returns ErrConflict, since what was
// decided on top of it would be folded onto another state.
func (j *Journal) SetAside(ctx context.Context, t Trouble, by string, now time.Time) error {
	subject, err := subjects.Journal(t.Key)
	if err == nil && !t.Loose {
		err = conn.ErrConflict
	}
	if err != nil {
		return fmt.Errorf("set aside: %w", err)
	}
	data, err := json.Marshal(asideMessage{&Aside{Seq: t.Seq, Hash: t.Hash, By: by, Why: t.Reason, At: now.UTC()}})
	if err != nil {
		return fmt.Errorf("set aside: %w", err)
	}
	m, err := j.conn.Message(subject, data)
	if err != nil {
		return fmt.Errorf("set aside: %w", err)
	}
	// The server compares: a runner of the newer version that goes on meanwhile
	// makes this an error, and so does a second call.
	m.Header.Set(jetstream.ExpectedLastSubjSeqHeader, fmt.Sprint(t.Seq))
	_, err = j.conn.Publish(ctx, m)
	if refused, _ := conn.WrongSequence(err); refused {
		err = conn.ErrConflict
	}
	if err != nil {
		return fmt.Errorf("set message %d of the journal of %s aside: %w", t.Seq, t.Key, err)
	}
	return nil
}
