package verifycommit

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/store"
	"github.com/pfl-forge/pfl-forge/proof"
)

const (
	// none is how git names what does not exist.
	none = "0000000000000000000000000000000000000000"
	// maxUpdates bounds the refs of a push.
	maxUpdates = 100_000
)

// update is the change of one ref by a push.
type update struct {
	// old and next are names of objects; none for a ref that is made, or deleted.
	old, next string
	// ref is the whole name of the ref.
	ref string
}

// push decides on a push: ExitError refuses all of it, and standard error, which git passes on to
// who pushes, says why: a line for each commit that is not as it should be, and one for each of
// its problems.
//
// Refs that are neither protected nor proofs are none of its business.
func (c *checker) push(ctx context.Context, a *kit.App, o *options) error {
	protected, err := c.protected(ctx, o.branches)
	if err != nil {
		return err
	}
	updates, err := readUpdates(a.In)
	if err != nil {
		return err
	}
	updates = slices.DeleteFunc(updates, func(u update) bool {
		return !slices.Contains(protected, u.ref) && !strings.HasPrefix(u.ref, store.ProofsPrefix)
	})
	if len(updates) == 0 {
		return nil // most pushes of workers are of neither
	}
	if err := c.repo.list(ctx); err != nil {
		return err
	}
	var answers []document
	// Proofs come first, whatever their order in the push: those that it brings count
	// for the commits that it brings.
	for _, u := range updates {
		refused, err := c.proofs(ctx, u, protected)
		if err != nil {
			return err
		}
		if refused != "" {
			return fmt.Errorf("%s %s", kit.Safe(u.ref), refused)
		}
	}
	for _, u := range updates {
		if !slices.Contains(protected, u.ref) {
			continue // its proofs are taken in
		}
		list, err := c.branch(ctx, u)
		if err != nil {
			return err
		}
		answers = append(answers, list...)
	}
	for i := range answers {
		if !answers[i].OK {
			line(&kit.App{Out: a.Err}, &answers[i])
			err = kit.ExitError
		}
	}
	if err != nil {
		fmt.Fprintln(a.Err, "pfl-forge: this branch takes only changes that were verified and reviewed; see pfl-forge verify-commit --help")
	}
	return err
}

// protected returns the whole names of the refs of the protected branches; without any, of the
// branch that HEAD names, which is the main one of a bare repository.
func (c *checker) protected(ctx context.Context, names []string) ([]string, error) {
	if len(names) == 0 {
		head, err := c.repo.git(ctx, "symbolic-ref", "HEAD")
		if err != nil {
			return nil, errors.New("HEAD is on no branch: name the protected ones with --branch")
		}
		return []string{head}, nil
	}
	var refs []string
	for _, name := range names {
		b, err := git.ParseBranch(name)
		if err != nil {
			return nil, fmt.Errorf("--branch: %w", err)
		}
		refs = append(refs, b.Ref())
	}
	return refs, nil
}

// readUpdates reads the lines that git gives to a pre-receive hook, a line for each ref: the old
// name, the new one, the ref. A line of another form ends it with an error, because then this is
// no hook's input, and deciding on half of a push would let the rest in.
func readUpdates(in io.Reader) ([]update, error) {
	var list []update
	s := bufio.NewScanner(in)
	for s.Scan() {
		f := strings.SplitN(s.Text(), " ", 3)
		if len(f) != 3 || !isName(f[0]) || !isName(f[1]) || f[2] == "" {
			return nil, fmt.Errorf("line %d of standard input is not of a pre-receive hook: want <old> <new> <ref>", len(list)+1)
		}
		if len(list) == maxUpdates {
			return nil, fmt.Errorf("the push has more than %d refs", maxUpdates)
		}
		list = append(list, update{old: f[0], next: f[1], ref: f[2]})
	}
	return list, s.Err()
}

// isName reports whether a word is the name of an object, or none.
func isName(s string) bool {
	_, err := git.ParseOID(s)
	return err == nil || s == none
}

// branch returns the answers about the new commits of a protected branch, the newest first. What a
// push may not do to it at all is an error: deleting it, making it, rewriting it.
func (c *checker) branch(ctx context.Context, u update) ([]document, error) {
	switch none {
	case u.next:
		return nil, fmt.Errorf("%s is protected, and cannot be deleted", kit.Safe(u.ref))
	case u.old:
		return nil, fmt.Errorf("%s is protected, and does not exist: make it before this hook is installed", kit.Safe(u.ref))
	}
	// The line of first parents has to lead back to where the branch is: so a merge
	// commit, whose line may pass by, is never taken for an addition.
	commits, err := c.repo.line(ctx, git.OID(u.old), git.OID(u.next))
	if errors.Is(err, errNotOnLine) {
		return nil, fmt.Errorf("%s is protected: a push must add to what is there, and %s does not build on %s by first parents",
			kit.Safe(u.ref), git.OID(u.next).Short(), git.OID(u.old).Short())
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", kit.Safe(u.ref), err)
	}
	var list []document
	for _, commit := range commits {
		d, err := c.check(ctx, commit)
		if err != nil {
			return nil, err
		}
		list = append(list, d)
	}
	return list, nil
}

// proofs takes the proofs of a push in, and returns why they are refused: they are
// no proofs, or would change those of a commit on a protected branch.
func (c *checker) proofs(ctx context.Context, u update, protected []string) (refused string, err error) {
	name, is := strings.CutPrefix(u.ref, store.ProofsPrefix)
	if !is {
		return "", nil
	}
	commit, err := git.ParseOID(name)
	if err != nil {
		return "is no place for proofs: want the name of a commit", nil
	}
	// Proofs of a commit that did not land may be replaced: after a crash an
	// implementer makes the same commit with another verify beside it.
	if u.old != none && u.old != u.next {
		merged, err := c.merged(ctx, commit, protected)
		if err != nil {
			return "", err
		}
		if merged {
			return "has the proofs of a commit on a protected branch, which cannot be changed", nil
		}
	}
	if u.next == none {
		delete(c.repo.proofs, commit)
		return "", nil
	}
	objects := c.repo.NewReader(ctx)
	defer objects.Close()
	_, err = objects.Blob(git.OID(u.next), proof.MaxBundle)
	if errors.Is(err, git.ErrNotFound) {
		return fmt.Sprintf("must be a file of at most %d bytes", proof.MaxBundle), nil
	}
	if err != nil {
		return "", err
	}
	c.repo.proofs[commit] = git.OID(u.next)
	return "", nil
}

// merged reports whether a commit is on a protected branch, as that is now.
func (c *checker) merged(ctx context.Context, commit git.OID, protected []string) (bool, error) {
	objects := c.repo.NewReader(ctx)
	defer objects.Close()
	if _, err := objects.Commit(commit); errors.Is(err, git.ErrNotFound) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	for _, ref := range protected {
		tip, err := c.repo.git(ctx, "for-each-ref", "--format=%(objectname)", ref)
		if err != nil {
			return false, err
		}
		if tip == "" {
			continue // there is no such branch
		}
		on, err := c.repo.IsAncestor(ctx, commit, git.OID(tip))
		if err != nil || on {
			return on, err
		}
	}
	return false, nil
}
