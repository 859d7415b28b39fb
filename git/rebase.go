package git

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxCommits is how many commits one attempt may make.
const maxCommits = 1000

// Rebased is the result of a rebase.
type Rebased struct {
	Head    OID    // equals onto when every change is there already
	Tree    OID    // of Head
	PatchID string // of onto..Head
	Commits int    // in onto..Head
}

// Rebase copies the commits base..head onto another commit without a checkout, as git rebase would: author,
// date and message stay, commits whose change is there already are left out. The committer is the service, at the
// time of the original, so the same rebase gives the same commits. The caller Keeps the result.
//
// Errors: *ConflictError; *WorkError (Rewritten when base is no ancestor of head, Merged, Oversized).
func (s *Store) Rebase(ctx context.Context, base, head, onto OID) (Rebased, error) {
	chain, from, tip, err := s.readRange(ctx, base, head, onto)
	if err != nil {
		return Rebased{}, err
	}
	n := len(chain)
	kept := n
	if base == onto {
		if n > 0 {
			tip = chain[n-1]
		}
	} else if tip, kept, err = s.replay(ctx, chain, from.tree, tip); err != nil {
		return Rebased{}, err
	}
	id, err := s.PatchID(ctx, onto, tip.oid)
	return Rebased{Head: tip.oid, Tree: tip.tree, PatchID: id, Commits: kept}, err
}

func (s *Store) readRange(ctx context.Context, base, head, onto OID) (chain []commitData, from, tip commitData, err error) {
	r, err := s.readCommits(ctx)
	if err != nil {
		return nil, from, tip, err
	}
	defer r.close()
	if from, err = r.commit(base); err != nil {
		return nil, from, tip, err
	}
	if tip, err = r.commit(onto); err != nil {
		return nil, from, tip, err
	}
	chain, err = r.chain(base, head)
	return chain, from, tip, err
}

// descends makes sure that head is base or descends from it. Error: *WorkError (Rewritten).
func (s *Store) descends(ctx context.Context, base, head OID) error {
	ok, err := s.IsAncestor(ctx, base, head)
	if err == nil && !ok {
		return rewritten(base)
	}
	return notFound(err)
}

func rewritten(base OID) error {
	return &WorkError{Fault: Rewritten, Detail: "the branch no longer contains " + base.Short() + ", the commit it started from"}
}

// replay picks each commit on top of tip and returns the new tip and how many commits it took.
func (s *Store) replay(ctx context.Context, commits []commitData, base OID, tip commitData) (commitData, int, error) {
	scratch, err := os.MkdirTemp(s.quarantine(), "rebase-")
	if err != nil {
		return tip, 0, err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	fresh := filepath.Join(scratch, "new") // what the rebase makes; in the store when all of it is there
	if err := os.Mkdir(fresh, 0o700); err != nil {
		return tip, 0, err
	}
	id := s.identity.orDefault()
	kept := 0
	for _, c := range commits {
		tree, err := s.mergeTrees(ctx, scratch, base, tip.tree, c.tree)
		if conflict, ok := err.(*ConflictError); ok {
			conflict.Commit = c.oid
		}
		if err != nil {
			return tip, 0, err
		}
		if tree == tip.tree && c.tree != base { // its change is there already
			base = c.tree
			continue
		}
		base = c.tree
		next := c
		next.tree, next.parents = tree, []OID{tip.oid}
		next.committer = fmt.Sprintf("%s <%s> %s", id.Name, id.Email, when(c.committer))
		if next.oid, err = writeCommit(fresh, next, false); err != nil {
			return tip, 0, err
		}
		tip, kept = next, kept+1
	}
	return tip, kept, migrate(fresh, s.objects())
}

// mergeTrees is a three-way merge of trees. git merge-tree finds the base by itself, from history, so it is
// given one: two scratch commits with the trees to merge, on a scratch parent with the base's tree. They live
// in a directory of their own that is thrown away.
func (s *Store) mergeTrees(ctx context.Context, scratch string, base, ours, theirs OID) (OID, error) {
	switch { // what a three-way merge answers without looking inside
	case base == theirs || ours == theirs:
		return ours, nil
	case base == ours:
		return theirs, nil
	}
	const nobody = "nobody <> 0 +0000"
	write := func(tree OID, parents ...OID) (o OID, err error) {
		d := commitData{tree: tree, parents: parents, author: nobody, committer: nobody}
		return writeCommit(scratch, d, false)
	}
	root, err := write(base)
	if err != nil {
		return "", err
	}
	left, err := write(ours, root)
	if err != nil {
		return "", err
	}
	right, err := write(theirs, root)
	if err != nil {
		return "", err
	}
	c := s.plumb()
	c.env = []string{"GIT_OBJECT_DIRECTORY=" + filepath.Join(scratch, "new"), alternates(s.objects(), scratch)}
	c.config = []string{"core.fsync=none"} // migrate does it
	var out bytes.Buffer
	c.stdout = &out
	_, err = run(ctx, c, "merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", string(left), string(right))
	fields := strings.Split(strings.TrimRight(out.String(), "\x00"), "\x00")
	if exitCode(err) == 1 {
		files := slices.Compact(slices.Sorted(slices.Values(fields[1:])))
		return "", &ConflictError{Files: files}
	}
	if err != nil {
		return "", err
	}
	return ParseOID(fields[0])
}

// PatchID names the change between two commits: equal for the same change at another place of history, with
// other line numbers. Unlike git patch-id it sees white space and the content of binary files.
func (s *Store) PatchID(ctx context.Context, base, head OID) (string, error) {
	h := sha256.New()
	c := s.plumb()
	lines := &patchLines{sum: h}
	c.stdout = lines
	_, err := run(ctx, c, "diff-tree", "-r", "-p", "--full-index", "--no-renames", "--no-ext-diff", "--no-textconv", "--diff-algorithm=myers",
		"-U3", "-O/dev/null", string(base), string(head))
	if err != nil {
		return "", err
	}
	lines.flush()
	return hex.EncodeToString(h.Sum(nil)), nil
}
