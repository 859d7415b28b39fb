package store

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/internal/disk"
	"github.com/pfl-forge/pfl-forge/git/worktree"
	"github.com/pfl-forge/pfl-forge/internal/retry"
)

// OriginConfig says how to open a service's own clone of an origin.
type OriginConfig struct {
	// URL is an ssh, https or file address, or an absolute path.
	URL string
	// Dir is the folder of the bare clone. It is made when absent, and discarded and cloned
	// again when broken: it holds nothing that the origin has not.
	Dir string
	// Patience bounds each command that talks to the origin; 0 is ten minutes.
	// The first clone may take twelve times as long.
	Patience time.Duration
	// Question bounds the question whether the origin answers at all, which
	// comes before that; 0 is ten seconds, or Patience if that is less.
	Question time.Duration
}

const (
	// defaultPatience is far more than a fetch takes that goes on at all. A server
	// that accepts and is silent, such as one behind a firewall that forgot the
	// connection, would be waited for without an end, with the lock of the clone.
	defaultPatience = 10 * time.Minute
	// clonePatience is how many times as long a clone may take: it brings all of a repository.
	clonePatience = 12
	// defaultQuestion is far more than a server takes to list one branch.
	defaultQuestion = 10 * time.Second
)

// OpenOrigin opens the clone at cfg.Dir and fetches. It never writes outside of
// cfg.Dir, except by Keep, Forget, Sweep and Merge, which push. An origin that
// cannot be reached is an error, also when there is a clone: a service must not
// begin with commits of yesterday.
func OpenOrigin(ctx context.Context, cfg OriginConfig) (*Store, error) {
	if err := CheckAddress(cfg.URL); err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return nil, err
	}
	patience := cmp.Or(cfg.Patience, defaultPatience)
	s := newStore(dir, cfg.URL, patience, cmp.Or(cfg.Question, min(defaultQuestion, patience)))
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return nil, err
	}
	// A fetch may take minutes and a clone hours, and whoever opens other
	// repositories after this one waits for it. So a server that takes the
	// connection and is silent is found out by a short question.
	if err := s.origin.question(ctx); git.Unserved(err) {
		return s, err
	}
	lock, err := git.LockFile(ctx, dir+".lock")
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	if intact(ctx, s) {
		// It brings what is new of all branches, and has the time of a clone:
		// otherwise it would be made anew, which takes no less.
		patient := &Store{Repository: s.Repository, origin: &origin{
			url: cfg.URL, clone: s.origin.clone, patience: clonePatience * s.origin.patience, short: s.origin.short,
		}}
		err = errors.Join(s.Setup(ctx), patient.Fetch(ctx))
		if err == nil || ctx.Err() != nil || git.Unserved(err) || errors.Is(err, git.ErrSlow) {
			return s, err
		}
	}
	// A git process that was killed may have left lock files in the clone. Nothing removes
	// them, so the clone is made anew, unless the origin cannot be read.
	return s, s.clone(ctx, []*os.File{lock})
}

// newStore returns a store with the clone at dir, which need not be there yet.
func newStore(dir, url string, patience, short time.Duration) *Store {
	repo := worktree.NewRepository(dir)
	return &Store{Repository: repo, origin: &origin{clone: repo, url: url, patience: patience, short: short}}
}

// ErrAddress says that a URL is not one of a repository.
var ErrAddress = errors.New("want an ssh, https or file address, or an absolute path")

// CheckAddress keeps out what git would read as an option or as a helper to run. The error
// wraps ErrAddress.
func CheckAddress(raw string) error {
	u, err := url.Parse(raw)
	switch {
	case strings.HasPrefix(raw, "/"):
		return nil
	case strings.HasPrefix(raw, "-") || strings.Contains(raw, "::"):
	case err == nil && (u.Scheme == "https" || u.Scheme == "http" || u.Scheme == "ssh" || u.Scheme == "file"):
		if !strings.HasPrefix(u.Host, "-") {
			return nil
		}
	case err != nil && strings.Contains(raw, "@") && strings.Contains(raw, ":"): // user@host:path
		return nil
	}
	return fmt.Errorf("origin %q: %w", git.Clip(raw), ErrAddress)
}

// intact reports whether the clone can be used as it is. It returns false in
// any doubt: a clone holds nothing that the origin does not have once Keep has
// returned.
func intact(ctx context.Context, s *Store) bool {
	if _, err := s.Git(ctx, "rev-parse", "--git-dir"); err != nil {
		return false
	}
	_, err := s.Git(ctx, "rev-list", "-n1", "--all", "--")
	return err == nil
}

// clone builds the repository aside and moves it into place, so a half-made one
// is never opened. git holds the lock in hold until it has ended.
func (s *Store) clone(ctx context.Context, hold []*os.File) error {
	final := s.Dir()
	old := fmt.Sprintf("%s.old-%d", final, time.Now().UnixNano())
	made := newStore(final+".new", s.origin.url, clonePatience*s.origin.patience, s.origin.short)
	if err := disk.RemoveAll(made.Dir()); err != nil {
		return err
	}
	if _, err := git.Run(ctx, git.Command{Hold: hold}, "init", "-q", "--bare", "--template=", "--", made.Dir()); err != nil {
		return err
	}
	if err := made.origin.fetch(ctx, "+refs/heads/*:refs/heads/*", "+refs/forge/*:refs/forge/*", "^"+ProofsPrefix+"*"); err != nil {
		return err
	}
	if disk.Exists(final) {
		if err := os.Rename(final, old); err != nil {
			return err
		}
	}
	if err := os.Rename(made.Dir(), final); err != nil {
		return err
	}
	if err := errors.Join(disk.SyncDir(filepath.Dir(final)), disk.RemoveAll(old)); err != nil {
		return err
	}
	return s.Setup(ctx)
}

// Fetch brings the branches of the origin, and the heads of tasks, up to date. In a
// local store it does nothing.
func (s *Store) Fetch(ctx context.Context) error {
	if s.origin == nil {
		return nil
	}
	return s.Locked(ctx, func(hold []*os.File) error {
		err := s.origin.fetch(ctx, "--prune", "+refs/heads/*:refs/heads/*", allHeads)
		tidy(ctx, s, hold)
		return err
	})
}

// FetchIntent brings the kept commits of an intent, so that a replica can go on with
// another one's work. In a local store it does nothing.
func (s *Store) FetchIntent(ctx context.Context, intent git.Name) error {
	if s.origin == nil {
		return nil
	}
	if _, err := git.ParseName(string(intent)); err != nil {
		return err
	}
	spec := "+" + intentPrefix(intent) + "*:" + intentPrefix(intent) + "*"
	return s.Locked(ctx, func([]*os.File) error { return s.origin.fetch(ctx, spec) })
}

// publish pushes kept commits to the origin. All but heads have their object's
// name in theirs, so nothing is overwritten; of a head the newest push counts.
func (s *Store) publish(ctx context.Context, kept []Kept) error {
	if s.origin == nil || len(kept) == 0 {
		return nil
	}
	args := []string{"-q", "--no-verify", "--no-follow-tags", "--end-of-options", s.origin.url}
	for _, k := range kept {
		args = append(args, fmt.Sprintf("+%s:%s", k.OID, k.Ref))
	}
	// What is pushed here is work that was paid for. An outage that is over
	// soon must not cost it again.
	pace := retry.Pace{First: 250 * time.Millisecond, Most: 2 * time.Second}
	for began, again := time.Now(), false; ; {
		_, err := s.origin.remote(ctx, git.OpPush, args...)
		if _, refused := git.Refusal(err); refused || git.CauseOf(err) == git.CauseAuth {
			// Scanners for secrets, limits of size and firewalls refuse one
			// push, and others nothing at all.
			if e := s.TakesWork(ctx); e != nil {
				return e
			}
			if again {
				return &git.RefusedError{Err: err}
			}
			again = true // it may have been mended just now
			continue
		}
		if !git.Unreachable(err) || time.Since(began) > pushPatience || pace.Sleep(ctx) != nil {
			return err
		}
	}
}

// TakesWork returns nil if the origin answers and keeps what is pushed below refs/forge, and
// in a local store. What it is to keep is a commit of the branch that steps work on, which it
// has, under a name that is deleted again. A *git.RefusedError says that it keeps nothing.
func (s *Store) TakesWork(ctx context.Context) error {
	if s.origin == nil {
		return nil
	}
	if err := s.origin.question(ctx); err != nil {
		return err
	}
	list := []string{"for-each-ref", "--count=1", "--sort=-committerdate", "--format=%(objectname)"}
	below := "refs/heads/"
	if b, ok := s.origin.base.Load().(git.Branch); ok {
		below = b.Ref()
	}
	out, err := git.Run(ctx, s.RefCommand(), append(list, below)...)
	if err != nil {
		return err
	}
	known := strings.TrimSpace(string(out))
	if known == "" { // there is nothing that a hook could not have against it
		return nil
	}
	ref := probePrefix + strings.ToLower(rand.Text()[:12])
	args := []string{"-q", "--no-verify", "--no-follow-tags", "--end-of-options", s.origin.url}
	if _, err = s.origin.remote(ctx, git.OpPush, append(args, "+"+known+":"+ref)...); err == nil {
		_, _ = s.origin.remote(ctx, git.OpPush, append(args, ":"+ref)...) // it may forbid to delete
		return nil
	}
	if _, refused := git.Refusal(err); refused {
		return &git.RefusedError{Err: err, All: true}
	}
	return err
}

// pushPatience is how long a push of kept commits waits for an origin that does not answer.
const pushPatience = 15 * time.Second

// probePrefix is the ref prefix of what is pushed to see whether the origin
// keeps anything. No intent can have the name _probe.
const probePrefix = "refs/forge/_probe/"
