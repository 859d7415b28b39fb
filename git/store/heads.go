package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/internal/disk"
	"github.com/pfl-forge/pfl-forge/git/objects"
)

// headsPrefix is the ref prefix of the newest head of each task under way. No intent
// can have the name _heads.
const headsPrefix = "refs/forge/_heads/"

// allHeads is the ref specification that fetches all of them.
const allHeads = "+" + headsPrefix + "*:" + headsPrefix + "*"

// isHead reports whether the ref is that of a task's newest head, which moves;
// other kept refs have one value for ever.
func (k Kept) isHead() bool { return strings.HasPrefix(k.Ref, headsPrefix) }

// TaskHeads returns the newest head of every task under way, sorted by task: those that
// were kept as Newest and not forgotten since. In a distributed store they are those
// that the origin had at the last Fetch.
func (s *Store) TaskHeads(ctx context.Context) ([]objects.TaskHead, error) {
	refs, err := s.refsBelow(ctx, headsPrefix)
	if err != nil {
		return nil, err
	}
	list := make([]objects.TaskHead, 0, len(refs))
	for _, k := range refs {
		if task, err := git.ParseName(strings.TrimPrefix(k.Ref, headsPrefix)); err == nil {
			list = append(list, objects.TaskHead{Task: task, Commit: k.OID})
		}
	}
	return list, nil
}

// hasRefTable reports whether git keeps refs in a table, and not as files that
// could be read and written without it.
func (s *Store) hasRefTable() bool { return disk.Exists(filepath.Join(s.Dir(), "reftable")) }

// packedRefs returns the content of packed-refs, the file of refs that have no file of
// their own; empty if there is none.
func (s *Store) packedRefs() ([]byte, error) {
	b, err := os.ReadFile(filepath.Join(s.Dir(), "packed-refs"))
	return b, disk.IgnoreMissing(err)
}

// Forget deletes the refs of merges, and of the heads of tasks that are not
// under way any more, first at the origin and then here, so that a repetition
// finds what a crash left. Refs that are gone already are ignored. The commits
// stay reachable under the refs of their attempts.
func (s *Store) Forget(ctx context.Context, merges []PendingMerge, tasks ...git.Name) error {
	var refs []string
	for _, l := range merges {
		if err := l.validate(); err != nil {
			return err
		}
		refs = append(refs, l.ref())
	}
	for _, t := range tasks {
		if _, err := git.ParseName(string(t)); err != nil {
			return err
		}
		refs = append(refs, headsPrefix+string(t))
	}
	if len(refs) == 0 {
		return nil
	}
	if s.origin != nil { // without the lock of the clone: nobody has to wait for this push
		s.origin.forgetting.Lock()
		defer s.origin.forgetting.Unlock()
		if err := s.origin.remove(ctx, refs); err != nil {
			return err
		}
	}
	return s.Locked(ctx, func(hold []*os.File) error { return s.deleteHere(ctx, refs, hold) })
}

// linkHead makes the file of a head by linking that of a kept ref, which is durable:
// git would fail on a file that a power cut left half written.
func (s *Store) linkHead(kept, head string) error {
	aside := s.Own("head-" + filepath.Base(head))
	if err := disk.IgnoreMissing(os.Remove(aside)); err != nil {
		return err
	}
	if err := os.Link(kept, aside); err != nil {
		return err
	}
	return errors.Join(os.Rename(aside, head), disk.IgnoreMissing(os.Remove(aside))) // which stays if it was the same file before
}

// deleteHere deletes refs in this repository. The file of a head is removed without
// git, which saves a process: no other process writes to it.
func (s *Store) deleteHere(ctx context.Context, refs []string, hold []*os.File) error {
	packed, err := s.packedRefs()
	if err != nil {
		return err
	}
	var in bytes.Buffer
	for _, r := range refs {
		if (Kept{Ref: r}).isHead() && !s.hasRefTable() && !bytes.Contains(packed, []byte(" "+r+"\n")) {
			if err := disk.IgnoreMissing(os.Remove(filepath.Join(s.Dir(), r))); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(&in, "delete %s\n", r)
	}
	return s.updateRefs(ctx, &in, hold)
}
