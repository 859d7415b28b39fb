package store

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/pfl-forge/pfl-forge/git"
)

const (
	// ProofsPrefix begins the refs of proofs. No intent can have the name
	// _proofs, so cleaning never finds them.
	ProofsPrefix = "refs/forge/_proofs/"
	// maxProofs bounds the proofs of a commit, in bytes.
	maxProofs = 1 << 20
)

// ProofsRef returns the ref of the proofs of a commit, which points to a blob.
func ProofsRef(commit git.OID) string { return ProofsPrefix + string(commit) }

// isProofs reports whether the ref is that of the proofs of a commit.
func (k Kept) isProofs() bool { return strings.HasPrefix(k.Ref, ProofsPrefix) }

// keptProofs stores the proofs of a commit as a blob, and returns what keeps it.
func (s *Store) keptProofs(commit git.OID, proofs string) (Kept, error) {
	if len(proofs) > maxProofs {
		return Kept{}, fmt.Errorf("the proofs of commit %s have %d bytes, more than %d", commit.Short(), len(proofs), maxProofs)
	}
	o, err := s.WriteBlob([]byte(proofs))
	return Kept{Ref: ProofsRef(commit), OID: o}, err
}

// Proofs returns the proofs of a commit that are in this repository; empty if
// there are none. In a distributed store they are fetched from the origin first.
func (s *Store) Proofs(ctx context.Context, commit git.OID) (string, error) {
	if _, err := git.ParseOID(string(commit)); err != nil {
		return "", err
	}
	ref := ProofsRef(commit)
	if s.origin != nil {
		if err := s.origin.bring(ctx, "+"+ref+":"+ref); err != nil {
			return "", err
		}
	}
	out, err := s.Git(ctx, "for-each-ref", "--format=%(objectname)", ref)
	if err != nil || len(out) == 0 {
		return "", err
	}
	o, err := git.ParseOID(strings.TrimSpace(string(out)))
	if err != nil {
		return "", err
	}
	r := s.NewReader(ctx)
	defer r.Close()
	text, err := r.Blob(o, maxProofs)
	if errors.Is(err, git.ErrTooLarge) {
		return "", fmt.Errorf("the proofs of commit %s: %w", commit.Short(), err)
	}
	return string(text), err
}
