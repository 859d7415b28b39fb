package objects

import (
	"bytes"
	"context"
	"errors"
	"maps"

	"github.com/pfl-forge/pfl-forge/bus/internal/conn"
)

// updates is how often an update is tried while others update the same object.
const updates = 10

// Object is an object as a whole.
type Object struct {
	About   map[string]string // what its writer notes beside the content
	Content []byte
}

// Read returns an object as a whole. Error: ErrNotFound.
func (o *Store) Read(ctx context.Context, name Name) (*Object, error) {
	var got *Object
	err := o.do(ctx, "read", name, func(ctx context.Context, at place) error {
		info, _, content, err := o.get(ctx, at)
		got = &Object{info.Metadata, content}
		return err
	})
	if err != nil {
		return nil, err
	}
	return got, nil
}

// Update replaces an object by what change makes of it; nil stands for none, and as an
// answer for no change. It is called again when another writer was faster: no update
// is lost. Errors: those of Put and of change, and ErrConflict when others go on and on.
func (o *Store) Update(ctx context.Context, name Name, change func(before *Object) (*Object, error)) error {
	return o.do(ctx, "update", name, func(ctx context.Context, at place) error {
		for attempt := 0; ; attempt++ {
			err := o.update(ctx, at, change)
			if !errors.Is(err, conn.ErrConflict) || attempt == updates {
				return err
			}
			if err := conn.Sleep(ctx, conn.Backoff(attempt)); err != nil {
				return err
			}
		}
	})
}

// update is one round of Update: it reads the object, calls change, and writes
// on condition that the object is still the one that it read.
func (o *Store) update(ctx context.Context, at place, change func(*Object) (*Object, error)) error {
	info, seq, content, err := o.get(ctx, at)
	if err != nil && !errors.Is(err, conn.ErrNotFound) {
		return err
	}
	var before *Object
	if err == nil {
		before = &Object{info.Metadata, content}
	}
	after, err := change(before)
	if err != nil || after == nil || before != nil && maps.Equal(before.About, after.About) && bytes.Equal(before.Content, after.Content) {
		return err
	}
	return o.put(ctx, at, writing{before: info.NUID, seq: &seq, about: after.About, content: bytes.NewReader(after.Content)})
}
