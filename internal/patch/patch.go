// Package patch stores the change of an attempt as an object beside its transcript, so that
// readers see it without git and without a worker that runs: it is kept as long, copied with a
// backup, and makes room for newer ones, as a transcript does.
//
// What is stored is the text whose hash is the id of the change. Whoever reads it computes that
// id anew and compares it with the journal's: every worker may write to the store, so that what
// is read there counts only as far as it can be proven. A patch that is too large is kept
// without the lines of some files. That is said of each of them, and of the patch that it
// proves nothing any more.
package patch

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/objects"
	"github.com/pfl-forge/pfl-forge/internal/patchid"
)

// aboutKey is the key of an object's metadata that has the About of its patch, as JSON.
const aboutKey = "patch"

// About describes a patch. It is stored beside the text.
type About struct {
	// Base and Head are the commits between which the change is, Tree has the files of Head.
	Base string `json:"base"`
	Head string `json:"head"`
	Tree string `json:"tree,omitempty"`
	// PatchID identifies the change; see package patchid.
	PatchID string `json:"patch_id"`
	// Cut has the files whose lines are not in the text, LeftOut counts those that are not in
	// it at all.
	Cut     []Cut `json:"cut,omitempty"`
	LeftOut int   `json:"left_out,omitempty"`
	// Withheld says why there is no text.
	Withheld string `json:"withheld,omitempty"`
}

// Patch is the change of an attempt, as it was stored or is to be.
type Patch struct {
	About

	// Text is the change as git prints it.
	Text []byte
}

var (
	// ErrDamaged says of a stored patch that it cannot be read.
	ErrDamaged = errors.New("the stored patch is damaged")
	// ErrOther says of a stored patch that it is another change than the journal names.
	ErrOther = errors.New("the stored patch is not the change that the journal names")
)

// Store stores the patch of an attempt. It can be repeated, as it is when an attempt is carried
// out once more: the same change has the same name, and another change of the same attempt is
// stored beside it, so that none that the journal may name is overwritten.
func Store(ctx context.Context, o *objects.Store, to forge.Key, a forge.Attempt, p *Patch) error {
	about, err := json.Marshal(p.About)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	zip, err := gzip.NewWriterLevel(&out, gzip.BestSpeed) // an attempt waits for it
	if err != nil {
		return err
	}
	if _, err := zip.Write(p.Text); err != nil {
		return err
	}
	if err := zip.Close(); err != nil {
		return err
	}
	stored := &objects.Object{About: map[string]string{aboutKey: string(about)}, Content: out.Bytes()}
	return o.Update(ctx, objects.PatchName(to, a, p.PatchID), func(*objects.Object) (*objects.Object, error) { return stored, nil })
}

// Read returns the patch of an attempt whose change has an id, base and head in the journal.
// Errors: bus.ErrNotFound, ErrDamaged, and ErrOther for one that is not this change.
func Read(ctx context.Context, o *objects.Store, to forge.Key, a forge.Attempt, want About) (*Patch, error) {
	stored, err := o.Read(ctx, objects.PatchName(to, a, want.PatchID))
	if err != nil {
		return nil, err
	}
	return unpack(stored, want)
}

// unpack is Read for what is stored, which any worker may have written.
func unpack(stored *objects.Object, want About) (*Patch, error) {
	p := &Patch{}
	if err := json.Unmarshal([]byte(stored.About[aboutKey]), &p.About); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	zip, err := gzip.NewReader(bytes.NewReader(stored.Content))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	// Headers of files come on top of the bound of a whole.
	const most = 3 * MaxWhole
	if p.Text, err = io.ReadAll(io.LimitReader(zip, most+1)); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if len(p.Text) > most {
		return nil, fmt.Errorf("%w: it has more than %d MiB", ErrDamaged, most>>20)
	}
	switch {
	case p.PatchID != want.PatchID || p.Base != want.Base || p.Head != want.Head:
		return nil, fmt.Errorf("%w: it says to be %s from %s to %s", ErrOther, short(p.PatchID), short(p.Base), short(p.Head))
	case p.Proves() && patchid.Of(p.Text) != want.PatchID:
		return nil, fmt.Errorf("%w: its lines have another id", ErrOther)
	}
	return p, nil
}

// Proves reports whether the text is all of the change, so that its id says that it is the
// right one.
func (p *Patch) Proves() bool { return len(p.Cut) == 0 && p.LeftOut == 0 && p.Withheld == "" }

// short returns the beginning of a name that may be anything.
func short(name string) string { return fmt.Sprintf("%.12q", name) }
