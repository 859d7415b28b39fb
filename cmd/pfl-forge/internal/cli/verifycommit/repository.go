package verifycommit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/objects"
	"github.com/pfl-forge/pfl-forge/git/store"
	"github.com/pfl-forge/pfl-forge/git/worktree"
	"github.com/pfl-forge/pfl-forge/proof"
)

// maxCommits bounds the commits that one range stands for.
const maxCommits = 100_000

// repository is one that is looked at. Nothing is written to it.
type repository struct {
	*objects.Database

	// dir is its git directory.
	dir string
	// quarantine has the objects of a push that is being decided on; empty for
	// none.
	quarantine string
	// hub is a temporary directory.
	hub string
	// proofs are the blobs with the proofs of commits, those of a push among them;
	// nil before they are listed.
	proofs map[git.OID]git.OID
}

// open returns the repository around the directory of the call, which the caller closes.
//
// In a hook the objects of the push are in a quarantine (GIT_QUARANTINE_PATH) until the hook has
// agreed. They are looked at there through a view of both, in a temporary directory.
func open(ctx context.Context, a *kit.App) (*repository, error) {
	dir, err := filepath.Abs(a.Dir)
	if err != nil {
		return nil, err
	}
	found, err := worktree.Discover(ctx, dir)
	if err != nil {
		return nil, err
	}
	r := &repository{dir: found.Dir()}
	var more []string
	if path := a.Getenv("GIT_QUARANTINE_PATH"); path != "" { // relative to where git calls its hook
		if r.quarantine, err = filepath.Abs(path); err != nil {
			return nil, err
		}
		more = append(more, r.quarantine)
	}
	if r.hub, err = os.MkdirTemp("", "pfl-forge-view-"); err != nil {
		return nil, err
	}
	r.Database = objects.NewView(r.dir, r.hub, more...)
	if err := r.WriteHub(); err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

// close ends git, and removes the temporary directory.
func (r *repository) close() {
	r.Close()
	_ = os.RemoveAll(r.hub)
}

// git runs a command on the repository's refs, which sees the objects of a push.
func (r *repository) git(ctx context.Context, args ...string) (string, error) {
	// git's own environment of a hook does not reach its child: it is built anew,
	// with no more of it than where the objects of the push are.
	c := git.Command{Dir: r.dir, GitDir: r.dir}
	if r.quarantine != "" {
		c.Env = append(c.Env, "GIT_OBJECT_DIRECTORY="+r.quarantine, "GIT_ALTERNATE_OBJECT_DIRECTORIES="+r.ObjectDir())
	}
	out, err := git.Run(ctx, c, args...)
	return strings.TrimSuffix(string(out), "\n"), err
}

// resolve returns the commit that a person names. A name that begins with a dash is a name to git,
// and no option.
func (r *repository) resolve(ctx context.Context, name string) (git.OID, error) {
	out, err := r.git(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", name+"^{commit}")
	if git.ExitCode(err) == 1 || git.ExitCode(err) == 128 {
		return "", fmt.Errorf("%q names no commit here", git.Clip(name))
	}
	if err != nil {
		return "", err
	}
	return git.ParseOID(out)
}

// commits returns the commits that an argument stands for, the newest first.
func (r *repository) commits(ctx context.Context, arg string) ([]git.OID, error) {
	from, to, ranged := strings.Cut(arg, "..")
	if !ranged {
		o, err := r.resolve(ctx, arg)
		return []git.OID{o}, err
	}
	if from == "" || to == "" || strings.HasPrefix(to, ".") {
		return nil, fmt.Errorf("%q: want A..B, with both commits named", git.Clip(arg))
	}
	old, err := r.resolve(ctx, from)
	if err != nil {
		return nil, err
	}
	tip, err := r.resolve(ctx, to)
	if err != nil {
		return nil, err
	}
	list, err := r.line(ctx, old, tip)
	if errors.Is(err, errNotOnLine) {
		return nil, fmt.Errorf("%s: %s is no commit of %s's own line (git log --first-parent)", kit.Safe(arg), kit.Safe(from), kit.Safe(to))
	}
	return list, err
}

// errNotOnLine says that a commit is not reached by first parents from another one.
var errNotOnLine = errors.New("a line of first parents ends before the commit")

// line returns the commits from tip back to old, by first parents, without old.
// Each parent is read from the commit itself, so neither grafts nor replacements
// count. Error: errNotOnLine.
func (r *repository) line(ctx context.Context, old, tip git.OID) ([]git.OID, error) {
	objects := r.NewReader(ctx)
	defer objects.Close()
	var list []git.OID
	for at := tip; at != old; {
		if len(list) == maxCommits {
			return nil, fmt.Errorf("there are more than %d commits from %s to %s", maxCommits, old.Short(), tip.Short())
		}
		c, err := objects.Commit(at)
		if err != nil {
			return nil, err
		}
		list = append(list, at)
		if len(c.Parents) == 0 {
			return nil, errNotOnLine
		}
		at = c.Parents[0]
	}
	return list, nil
}

// list reads which commits have proofs, once. Refs below the prefix that name no commit are passed
// over.
func (r *repository) list(ctx context.Context) error {
	if r.proofs != nil {
		return nil
	}
	out, err := r.git(ctx, "for-each-ref", "--format=%(objectname) %(refname)", store.ProofsPrefix)
	if err != nil {
		return err
	}
	r.proofs = map[git.OID]git.OID{}
	for line := range strings.Lines(out) {
		blob, ref, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if commit, err := git.ParseOID(strings.TrimPrefix(ref, store.ProofsPrefix)); err == nil {
			r.proofs[commit] = git.OID(blob)
		}
	}
	return nil
}

// checker says of commits whether they were made as they should.
type checker struct {
	repo    *repository
	trusted proof.Signers
	// approved wants an approval of each.
	approved bool
}

// check returns the answer about a commit. An error says that it could not be found out; a commit
// that is not as it should be is an answer, with its problems.
//
// Proofs are checked first (package proof), then the rules by which they had to be made, and at
// last what the call asks for beyond these.
func (c *checker) check(ctx context.Context, commit git.OID) (document, error) {
	if err := c.repo.list(ctx); err != nil {
		return document{}, err
	}
	objects := c.repo.NewReader(ctx)
	defer objects.Close()
	raw, err := objects.RawCommit(commit)
	if err != nil {
		return document{}, err
	}
	var bundle []byte
	blob, known := c.repo.proofs[commit]
	if known {
		bundle, err = objects.Blob(blob, proof.MaxBundle)
	}
	if errors.Is(err, git.ErrNotFound) { // also when it is too large, or is no blob
		report := proof.Report{Problems: []string{fmt.Sprintf("its proofs are no file of at most %d bytes", proof.MaxBundle)}}
		return newDocument(string(commit), &report), nil
	}
	if err != nil {
		return document{}, err
	}
	// The patch id is computed from the objects here: no statement can lend itself
	// to another change by naming one.
	report := proof.Check(raw, string(bundle), c.trusted, func(about proof.Change) (string, error) {
		return c.repo.PatchID(ctx, git.OID(about.Parent), commit)
	})
	for _, need := range report.Needs() {
		if err := c.hold(ctx, objects, &report, commit, need); err != nil {
			return document{}, err
		}
	}
	if err := c.second(ctx, objects, &report, commit); err != nil {
		return document{}, err
	}
	if c.approved {
		report.NeedApproval()
	}
	if !known && report.SignedBy != "" {
		report.Problems = append(report.Problems, "if they are elsewhere: git fetch <remote> '"+store.ProofsPrefix+"*:"+store.ProofsPrefix+"*'")
	}
	return newDocument(string(commit), &report), ctx.Err()
}
