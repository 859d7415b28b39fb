package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge/git"
)

// FetchProposed brings the commits to which the branches of tasks were pushed last (Propose)
// from a remote of a person's clone, such as origin, and returns them by their tasks; none where
// the clone has no such remote. No ref is written: the commits can be read until the person's
// git tidies up. Refs stay at the origin when branches are deleted, and so do the commits.
//
// It is asked under the person's own configuration, as their git would. A
// remote that is silent for two minutes is git.ErrSilent.
func FetchProposed(ctx context.Context, s *Store, remote string) (map[git.Name]git.OID, error) {
	if _, err := git.ParseName(remote); err != nil {
		return nil, err
	}
	if _, err := s.Git(ctx, "config", "--get", "remote."+remote+".url"); err != nil {
		if git.ExitCode(err) == 1 {
			return nil, nil //nolint:nilnil // there is none
		}
		return nil, err
	}
	c := transport(s.RefCommand())
	c.Personal = true
	out, err := within(ctx, c, git.OpList, "-q", "--refs", "--end-of-options", remote, proposedPrefix+"*")
	if err != nil || len(out) == 0 {
		return nil, err
	}
	found := map[git.Name]git.OID{}
	var refs strings.Builder
	for line := range strings.Lines(string(out)) {
		oid, ref, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		name, below := strings.CutPrefix(ref, proposedPrefix)
		task, err := git.ParseName(name)
		commit, err2 := git.ParseOID(oid)
		if !below || err != nil || err2 != nil {
			continue // not of Propose
		}
		found[task] = commit
		fmt.Fprintln(&refs, ref)
	}
	c.Stdin = strings.NewReader(refs.String())
	_, err = within(ctx, c, git.OpFetch, "-q", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--no-recurse-submodules",
		"--stdin", "--end-of-options", remote)
	return found, err
}

// personPatience is how long a command may take that talks to a remote of a person's clone.
const personPatience = 2 * time.Minute

// within runs a command that talks to a remote of a person's clone.
func within(ctx context.Context, c git.Command, op git.Operation, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, personPatience, git.ErrSilent)
	defer cancel()
	out, err := git.Run(ctx, c, append([]string{string(op)}, args...)...)
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("%w: %w", git.ErrSilent, err)
	}
	return out, err
}
