package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/worktree"
)

// origin is the repository that all replicas share. Its branches and hidden refs are the
// truth; the clone is a cache. Its methods are the commands that talk to it.
type origin struct {
	url string
	// clone is the repository whose commands these are.
	clone *worktree.Repository
	// patience bounds a command that talks to it, and short the question whether it answers.
	patience, short time.Duration
	// base is the branch that a step worked on last; none before the first.
	base atomic.Value
	// forgetting lets one Forget at a time delete there: deletions wait for
	// each other's locks, and not for long.
	forgetting sync.Mutex
}

// remote runs a git command that talks to the origin. It takes as long as the network does,
// so an Observer is called. An origin that is silent until the time limit of the command or
// of the caller yields git.ErrSilent, or git.ErrSlow if it answers a short question then.
func (o *origin) remote(ctx context.Context, op git.Operation, args ...string) ([]byte, error) {
	return o.run(ctx, o.patience, o.transport(), op, args...)
}

// run is remote within a time, by a command of any folder.
func (o *origin) run(ctx context.Context, within time.Duration, c git.Command, op git.Operation, args ...string) ([]byte, error) {
	timed, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	timed, end := git.Begin(timed, op)
	out, err := git.Run(timed, c, append([]string{string(op)}, args...)...)
	if e, ok := errors.AsType[*git.Error](err); ok && errors.Is(e.Err, context.DeadlineExceeded) {
		e.Err = git.ErrSilent
		// Whoever probes an origin that is away asks it the same. What that takes for an answer
		// must be none of an outage: all would wait for the probe, go on, and wait again.
		if op != git.OpList && ctx.Err() == nil && !git.Unserved(o.question(ctx)) {
			e.Err = fmt.Errorf("%w (%s)", git.ErrSlow, within)
		}
	}
	end(err)
	return out, err
}

// transport returns a command that may talk to the origin: with the user's SSH
// agent, if there is one, and with git's checks of every object that comes in.
func (o *origin) transport() git.Command { return transport(o.clone.RefCommand()) }

// transport returns a command that may talk to other repositories.
func transport(c git.Command) git.Command {
	if sock, ok := os.LookupEnv("SSH_AUTH_SOCK"); ok {
		c.Env = append(c.Env, "SSH_AUTH_SOCK="+sock)
	}
	c.Config = append(
		c.Config,
		"protocol.file.allow=always", "protocol.ssh.allow=always", "protocol.https.allow=always",
		"protocol.http.allow=always", "fetch.fsckObjects=true", "fetch.unpackLimit=1000",
	)
	return c
}

// fetch takes ref specifications, which may have "--prune" before them. Tags are not
// fetched, and nothing is written but objects and refs. Of a fetch that failed nothing
// stays: a git that is killed leaves the pack that it was receiving, as many bytes as
// came, and the next one would begin another. The caller holds the lock of the clone.
func (o *origin) fetch(ctx context.Context, specs ...string) error {
	err := o.bring(ctx, specs...)
	if err != nil {
		dropReceived(o.clone)
	}
	return err
}

// dropReceived removes packs that a fetch has not ended, and no files that we write
// there ourselves. The caller holds the lock of the clone, so no fetch is under way.
func dropReceived(clone *worktree.Repository) {
	dir := filepath.Join(clone.ObjectDir(), "pack")
	for _, e := range entries(dir) {
		for _, kind := range []string{"tmp_pack_", "tmp_idx_", "tmp_rev_"} {
			if strings.HasPrefix(e.Name(), kind) {
				_ = os.Remove(filepath.Join(dir, e.Name()))
			}
		}
	}
}

// bring is fetch, also without the lock of the clone.
func (o *origin) bring(ctx context.Context, specs ...string) error {
	args := []string{"-q", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--no-recurse-submodules"}
	if specs[0] == "--prune" {
		args, specs = append(args, "--prune"), specs[1:]
	}
	args = append(append(args, "--end-of-options", o.url), specs...)
	_, err := o.remote(ctx, git.OpFetch, args...)
	return err
}

// push pushes and returns the report for programs, which git prints to its
// standard output. In it is why a ref was refused, so the error has it as well.
func (o *origin) push(ctx context.Context, args ...string) ([]byte, error) {
	ctx, end := git.Begin(ctx, git.OpPush)
	var out bytes.Buffer
	c := o.transport()
	c.Stdout = &out
	_, err := git.Run(ctx, c, append([]string{string(git.OpPush)}, args...)...)
	end(err)
	if e, ok := errors.AsType[*git.Error](err); ok {
		for line := range strings.Lines(out.String()) {
			if strings.HasPrefix(line, "!") {
				e.Stderr += "\n" + line
			}
		}
	}
	return out.Bytes(), err
}

// head asks the origin for the tip of a branch. Error: ErrNoBranch.
func (o *origin) head(ctx context.Context, b git.Branch) (git.OID, error) {
	out, err := o.remote(ctx, git.OpList, "-q", "--heads", "--", o.url, b.Ref()) // it lists branches alone
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(out)) { // a pattern matches the end of other names as well
		if oid, ref, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t"); ref == b.Ref() {
			return git.ParseOID(oid)
		}
	}
	return "", fmt.Errorf("branch %s: %w", b, git.ErrNoBranch)
}

// remove deletes refs at the origin. The error has only what the origin said:
// the call itself would name all refs. An origin refuses all of them if one goes
// while it deletes, as when another replica deletes the head of the same task,
// and ignores those that are gone before. So a refusal is asked for once more.
func (o *origin) remove(ctx context.Context, refs []string) error {
	args := []string{"-q", "--no-verify", "--end-of-options", o.url}
	for _, ref := range refs {
		args = append(args, ":"+ref)
	}
	_, err := o.remote(ctx, git.OpPush, args...)
	if err != nil && ctx.Err() == nil && !git.Unserved(err) && !errors.Is(err, git.ErrSlow) {
		_, err = o.remote(ctx, git.OpPush, args...)
	}
	if said := git.Stderr(err); said != "" {
		return fmt.Errorf("delete refs at the origin: %s", said) // the call itself would name all of them
	}
	return err
}

// question has the origin list a branch within a short time: its other branches
// and hidden refs are left out. The clone need not be there yet.
func (o *origin) question(ctx context.Context) error {
	c := o.transport()
	c.Dir = filepath.Dir(c.GitDir)
	_, err := o.run(ctx, o.short, c, git.OpList, "-q", "--heads", "--", o.url, "HEAD") // it lists branches alone
	return err
}
