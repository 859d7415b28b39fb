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
	"sync"
	"sync/atomic"
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
	// Patience bounds each command that talks to the origin; 0 is ten minutes. The first clone may take twelve times as long.
	Patience time.Duration
	// Question bounds the question whether the origin answers at all, which comes before that; 0 is ten seconds.
	Question time.Duration
}

const (
	// defaultPatience is far more than a fetch takes that goes on at all. A server that accepts and is silent, such as one behind
	// a firewall that forgot the connection, would be waited for without an end, with the lock of the clone.
	defaultPatience = 10 * time.Minute
	// clonePatience is how many times as long a clone may take: it brings all of a repository.
	clonePatience = 12
	// defaultQuestion is far more than a server takes to list one branch.
	defaultQuestion = 10 * time.Second
)

// origin is the repository that all replicas share. Its branches and hidden refs are the
// truth; the clone is a cache.
type origin struct {
	url string
	// patience bounds a command that talks to it.
	patience time.Duration
	// base is the branch that a step worked on last; none before the first.
	base atomic.Value
	// forgetting lets one Forget at a time delete there: deletions wait for each other's locks, and not for long.
	forgetting sync.Mutex
}

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
	s := &Store{Repository: worktree.NewRepository(dir), origin: &origin{url: cfg.URL, patience: cmp.Or(cfg.Patience, defaultPatience)}}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return nil, err
	}
	// A fetch may take minutes and a clone hours, and whoever opens other repositories after this one waits for it. So a server that takes
	// the connection and is silent is found out by a short question.
	if err := s.origin.question(ctx, s.transport(), cmp.Or(cfg.Question, defaultQuestion)); git.Unserved(err) {
		return s, err
	}
	lock, err := git.LockFile(ctx, dir+".lock")
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	if intact(ctx, s) {
		// It brings what is new of all branches, and has the time of a clone: otherwise it would be made anew, which takes no less.
		patient := &Store{Repository: s.Repository, origin: &origin{url: cfg.URL, patience: clonePatience * s.origin.patience}}
		err = errors.Join(s.Setup(ctx), patient.Fetch(ctx))
		if err == nil || ctx.Err() != nil || git.Unserved(err) || errors.Is(err, git.ErrSlow) {
			return s, err
		}
	}
	// A git process that was killed may have left lock files in the clone. Nothing removes
	// them, so the clone is made anew, unless the origin cannot be read.
	return s, s.clone(ctx, []*os.File{lock})
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
	made := &Store{Repository: worktree.NewRepository(final + ".new"), origin: &origin{url: s.origin.url, patience: clonePatience * s.origin.patience}}
	if err := disk.RemoveAll(made.Dir()); err != nil {
		return err
	}
	if _, err := git.Run(ctx, git.Command{Hold: hold}, "init", "-q", "--bare", "--template=", "--", made.Dir()); err != nil {
		return err
	}
	if err := made.fetch(ctx, "+refs/heads/*:refs/heads/*", "+refs/forge/*:refs/forge/*", "^"+ProofsPrefix+"*"); err != nil {
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
		err := s.fetch(ctx, "--prune", "+refs/heads/*:refs/heads/*", allHeads)
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
	return s.Locked(ctx, func([]*os.File) error { return s.fetch(ctx, spec) })
}

// fetch takes ref specifications, which may have "--prune" before them. Tags
// are not fetched, and nothing is written but objects and refs. Of a fetch that failed nothing stays: a git that is killed leaves the pack
// that it was receiving, as many bytes as came, and the next one would begin another. The caller holds the lock of the clone.
func (s *Store) fetch(ctx context.Context, specs ...string) error {
	err := s.bring(ctx, specs...)
	if err != nil {
		dropReceived(s)
	}
	return err
}

// dropReceived removes packs that a fetch has not ended, and no files that we write there ourselves. The caller holds the lock of the clone,
// so no fetch is under way.
func dropReceived(s *Store) {
	dir := filepath.Join(s.ObjectDir(), "pack")
	for _, e := range entries(dir) {
		for _, kind := range []string{"tmp_pack_", "tmp_idx_", "tmp_rev_"} {
			if strings.HasPrefix(e.Name(), kind) {
				_ = os.Remove(filepath.Join(dir, e.Name()))
			}
		}
	}
}

// bring is fetch, also without the lock of the clone.
func (s *Store) bring(ctx context.Context, specs ...string) error {
	args := []string{"-q", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--no-recurse-submodules"}
	if specs[0] == "--prune" {
		args, specs = append(args, "--prune"), specs[1:]
	}
	args = append(append(args, "--end-of-options", s.origin.url), specs...)
	_, err := s.talk(ctx, git.OpFetch, args...)
	return err
}

// talk runs a git command that talks to the origin. Its time is the network's, so an
// Observer is told. An origin that is silent until the command's time is over, or the caller's, is
// one that does not answer: git.ErrSilent. One that answers a question then is at work: git.ErrSlow.
func (s *Store) talk(ctx context.Context, op git.Operation, args ...string) ([]byte, error) {
	return s.origin.talk(ctx, s.transport(), op, args...)
}

// talk is that of the store, by a command of any folder.
func (o *origin) talk(ctx context.Context, c git.Command, op git.Operation, args ...string) ([]byte, error) {
	timed, cancel := context.WithTimeout(ctx, o.patience)
	defer cancel()
	timed, end := git.Begin(timed, op)
	out, err := git.Run(timed, c, append([]string{string(op)}, args...)...)
	if e, ok := errors.AsType[*git.Error](err); ok && errors.Is(e.Err, context.DeadlineExceeded) {
		e.Err = git.ErrSilent
		// Whoever probes an origin that is away asks it the same. What that takes for an answer must be none of an outage: all would wait
		// for the probe, go on, and wait again.
		if op != git.OpList && ctx.Err() == nil && !git.Unserved(o.question(ctx, c, defaultQuestion)) {
			e.Err = fmt.Errorf("%w (%s)", git.ErrSlow, o.patience)
		}
	}
	end(err)
	return out, err
}

// transport returns a command that may talk to the origin: with the user's SSH
// agent, if there is one, and with git's checks of every object that comes in.
func (s *Store) transport() git.Command {
	c := s.RefCommand()
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
	// What is pushed here is work that was paid for. An outage that is over soon must not cost it again.
	pace := retry.Pace{First: 250 * time.Millisecond, Most: 2 * time.Second}
	for began, again := time.Now(), false; ; {
		_, err := s.talk(ctx, git.OpPush, args...)
		if _, refused := git.Refusal(err); refused || git.CauseOf(err) == git.CauseAuth {
			// Scanners for secrets, limits of size and firewalls refuse one push, and others nothing at all.
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

// TakesWork returns nil if the origin answers and keeps what is pushed below refs/forge, and in a local store. What it is to keep is a commit of
// the branch that steps work on, which it has, under a name that is deleted again. A *git.RefusedError says that it keeps nothing.
func (s *Store) TakesWork(ctx context.Context) error {
	if s.origin == nil {
		return nil
	}
	if err := s.origin.question(ctx, s.transport(), defaultQuestion); err != nil {
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
	if _, err = s.talk(ctx, git.OpPush, append(args, "+"+known+":"+ref)...); err == nil {
		_, _ = s.talk(ctx, git.OpPush, append(args, ":"+ref)...) // it may forbid to delete
		return nil
	}
	if _, refused := git.Refusal(err); refused {
		return &git.RefusedError{Err: err, All: true}
	}
	return err
}

// pushPatience is how long a push of kept commits waits for an origin that does not answer.
const pushPatience = 15 * time.Second

// probePrefix is the ref prefix of what is pushed to see whether the origin keeps anything. No intent can have the name _probe.
const probePrefix = "refs/forge/_probe/"

// ask has the origin list a branch that is not there: its branches and hidden refs are left out.
func (o *origin) ask(ctx context.Context, c git.Command) error {
	_, err := o.talk(ctx, c, git.OpList, "-q", "--heads", "--", o.url, "HEAD") // it lists branches alone
	return err
}

// question is ask within a time, by a command for a clone that need not be there yet.
func (o *origin) question(ctx context.Context, c git.Command, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	c.Dir = filepath.Dir(c.GitDir)
	return o.ask(ctx, c)
}
