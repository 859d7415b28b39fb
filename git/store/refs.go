package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/internal/disk"
)

// Kept names a commit and the hidden ref that keeps it.
type Kept struct {
	// Ref is the whole name, from refs/forge/ on; package store says which
	// there are.
	Ref string
	// OID is the commit.
	OID git.OID
}

// Keep makes the commit reachable under the attempt's hidden ref, and in a distributed
// store publishes it to the origin. It returns when that is durable, so callers keep a
// commit before they name it anywhere. Keeping it again changes nothing.
func (s *Store) Keep(ctx context.Context, a Attempt, commit git.OID) (Kept, error) {
	if err := a.Validate(); err != nil {
		return Kept{}, err
	}
	k := Kept{Ref: a.KeptRef(commit), OID: commit}
	if !a.Newest {
		return k, s.KeepAll(ctx, k)
	}
	return k, s.KeepAll(ctx, k, Kept{Ref: headsPrefix + string(a.Task), OID: commit})
}

// KeepAll makes commits reachable under refs of the caller's choice, with the
// promises of Keep. A head of a task comes with the same commit before it,
// which has to be the first of all. All of them go to the origin in one push.
func (s *Store) KeepAll(ctx context.Context, kept ...Kept) error {
	var in bytes.Buffer
	var here []Kept
	r := s.NewReader(ctx)
	defer r.Close()
	for _, k := range kept {
		if _, err := git.ParseOID(string(k.OID)); err != nil {
			return err
		}
		if k.isHead() && s.origin != nil {
			continue // it comes with the next fetch, which would fail had it changed under its hands
		}
		if k.isProofs() && s.origin != nil {
			continue // the origin has them; a clone would only collect them
		}
		here = append(here, k)
		fmt.Fprintf(&in, "update %s %s\n", k.Ref, k.OID)
	}
	if !s.keepFiles(ctx, here) {
		if err := s.updateRefs(ctx, &in, nil); err != nil {
			return err
		}
	}
	return s.publish(ctx, kept)
}

// updateRefs has git carry out lines of git-update-ref(1), "update <ref> <oid>" and
// "delete <ref>", all of them or none. git inherits the locks in hold: they stay taken until
// it has ended, even if this process is killed. Without any line nothing is run.
func (s *Store) updateRefs(ctx context.Context, lines *bytes.Buffer, hold []*os.File) error {
	if lines.Len() == 0 {
		return nil
	}
	c := s.RefCommand()
	c.Stdin, c.Hold = lines, hold
	_, err := git.Run(ctx, c, "update-ref", "--no-deref", "--stdin")
	return err
}

// keepFiles writes the refs as the files that git keeps them in, durable. That saves a
// process, and needs no lock: a kept ref has its commit's name, so it never gets
// another value; and a head that gets lost, because git packs refs at this very moment,
// is made up for by the task's next one. It returns false when git has to do it: for
// commits that are not in the store, for refs in a table, and when anything goes wrong.
func (s *Store) keepFiles(ctx context.Context, kept []Kept) bool {
	if s.hasRefTable() {
		return false
	}
	r := s.NewReader(ctx)
	defer r.Close()
	for _, k := range kept {
		if k.isProofs() {
			// Its blob was just written, durable. Unlike other kept refs it may get
			// another value: of two the later one counts, and both are complete.
			continue
		}
		if _, err := r.Commit(k.OID); err != nil {
			return false
		}
	}
	for _, k := range kept {
		path := filepath.Join(s.Dir(), k.Ref)
		if os.MkdirAll(filepath.Dir(path), 0o777) != nil {
			return false
		}
		if k.isHead() { // Keep comes with the same commit before it
			if s.linkHead(filepath.Join(s.Dir(), kept[0].Ref), path) != nil {
				return false
			}
			continue
		}
		if disk.Place(path, s.Own(""), []byte(k.OID+"\n"), true) != nil || os.Chmod(path, 0o644) != nil {
			return false
		}
	}
	return true
}

// List returns every kept commit of an intent, sorted by ref: heads, leftovers,
// strays, checkpoints and merges. In a distributed store those that were
// fetched: see FetchIntent.
func (s *Store) List(ctx context.Context, intent git.Name) ([]Kept, error) {
	return s.refsBelow(ctx, intentPrefix(intent))
}

// refsBelow returns the refs below a prefix that ends with a slash, sorted, as
// git does. Where git keeps refs as files they are read without it.
func (s *Store) refsBelow(ctx context.Context, prefix string) ([]Kept, error) {
	if s.hasRefTable() {
		out, err := s.Git(ctx, "for-each-ref", "--format=%(objectname) %(refname)", prefix)
		if err != nil {
			return nil, err
		}
		return slices.SortedFunc(refsOf(out, prefix), byRef), nil
	}
	// Files come before packed refs, and are read before: one that is packed
	// meanwhile is found there.
	found := map[string]git.OID{}
	err := filepath.WalkDir(filepath.Join(s.Dir(), filepath.FromSlash(prefix)), func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || err == nil && (!e.Type().IsRegular() || strings.HasSuffix(path, ".lock")) {
			return nil
		}
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(s.Dir(), path)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(path) //nolint:gosec // the git directory is its owner's, and what is read has to be an object's name
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if o, wrong := git.ParseOID(strings.TrimSpace(string(text))); err == nil && wrong == nil {
			found[filepath.ToSlash(rel)] = o
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	packed, err := s.packedRefs()
	if err != nil {
		return nil, err
	}
	for k := range refsOf(packed, prefix) {
		if found[k.Ref] == "" {
			found[k.Ref] = k.OID
		}
	}
	var list []Kept
	for ref, o := range found {
		list = append(list, Kept{ref, o})
	}
	slices.SortFunc(list, byRef)
	return list, nil
}

// refsOf yields the refs below a prefix in lines of an object's name, a blank and the ref.
func refsOf(lines []byte, prefix string) iter.Seq[Kept] {
	return func(yield func(Kept) bool) {
		for line := range bytes.Lines(lines) {
			oid, ref, _ := strings.Cut(strings.TrimSuffix(string(line), "\n"), " ")
			if o, err := git.ParseOID(oid); err == nil && strings.HasPrefix(ref, prefix) && !yield(Kept{ref, o}) {
				return
			}
		}
	}
}

// byRef compares two refs by name.
func byRef(a, b Kept) int { return strings.Compare(a.Ref, b.Ref) }
