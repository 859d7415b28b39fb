package worktree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/objects"
)

// lockWait is how long a change of the repository waits for another process of ours.
const lockWait = 30 * time.Second

// Repository is a repository with the branches and working trees of a person, if it has
// any. Its methods are safe for concurrent use, also by several processes.
type Repository struct {
	*objects.Database

	// common is the git directory with refs, objects and configuration, shared
	// by all working trees.
	common string
	// workTree is the main working tree; empty when the repository is bare.
	workTree string

	// mu serialises Locked within the process; a file lock does it between
	// processes.
	mu sync.Mutex
}

// NewRepository returns the bare repository with this git directory. It touches
// nothing; Setup comes before any other method.
func NewRepository(gitDir string) *Repository {
	return &Repository{Database: objects.NewDatabase(gitDir), common: gitDir}
}

// Discover finds the repository around path, or at path when it is a bare one. Error:
// ErrNotRepository.
func Discover(ctx context.Context, path string) (*Repository, error) {
	query := []string{"rev-parse", "--path-format=absolute", "--is-bare-repository", "--git-common-dir"}
	out, around := git.Run(ctx, git.Command{Dir: path}, query...)
	err := around
	if err != nil && git.ExitCode(err) == 128 {
		out, err = git.Run(ctx, git.Command{Dir: path, GitDir: path}, query...)
	}
	bare, common, found := strings.Cut(strings.TrimSuffix(string(out), "\n"), "\n") // a path may hold a newline
	if err != nil || !found {
		if ctx.Err() != nil {
			return nil, err
		}
		// There may be one that git does not take: it is of another user, or
		// its configuration cannot be read. Or there is no git.
		var refused *git.Error
		if errors.As(around, &refused) && !strings.Contains(refused.Stderr, "not a git repository") {
			return nil, fmt.Errorf("%s: %w", path, around)
		}
		return nil, fmt.Errorf("%s: %w", path, errors.Join(git.ErrNotRepository, err))
	}
	repo := NewRepository(common)
	if bare == "true" {
		return repo, nil
	}
	repo.workTree, err = mainWorkTree(ctx, path, common)
	return repo, err
}

// Setup checks the repository's format and makes the hub. Nothing in here changes what
// git shows to a person. Error: ErrUnsupported.
func (repo *Repository) Setup(ctx context.Context) error {
	out, err := repo.Git(ctx, "config", "--null", "--get-regexp", `^extensions\.(partialclone|objectformat)$`)
	if err != nil && git.ExitCode(err) != 1 { // 1: there are none
		return err
	}
	for entry := range strings.SplitSeq(string(out), "\x00") {
		if key, value, set := strings.Cut(entry, "\n"); set && value != "" && value != "sha1" {
			return fmt.Errorf("%s: %s is %s: %w", repo.common, key, value, git.ErrUnsupported)
		}
	}
	return repo.WriteHub()
}

// Dir returns the git directory of the repository, the common one of all its working trees.
func (repo *Repository) Dir() string { return repo.common }

// WorkTree returns the path of the person's main working tree, or "" in a bare
// repository or a clone of the service.
func (repo *Repository) WorkTree() string { return repo.workTree }

// Own returns the path of a file that the service keeps about the repository:
// in pfl-forge/ of its git directory, where git looks at nothing.
func (repo *Repository) Own(name string) string { return filepath.Join(repo.common, "pfl-forge", name) }

// Git runs a command on the repository itself, under the configuration of the
// person who owns it, and returns its standard output. Hooks do not run.
func (repo *Repository) Git(ctx context.Context, args ...string) ([]byte, error) {
	return git.Run(ctx, repo.RefCommand(), args...)
}

// lockTimeout is how long git waits for the lock of a ref, or of the packed ones, in milliseconds.
// Others hold them for moments, such as a git gc of the person; git itself gives up after 100.
const lockTimeout = "10000"

// RefCommand returns a command on the repository's refs. Reflogs name the service.
func (repo *Repository) RefCommand() git.Command {
	return git.Command{
		Dir: repo.common, GitDir: repo.common, Env: repo.committer(),
		Config: []string{"core.filesRefLockTimeout=" + lockTimeout, "core.packedRefsTimeout=" + lockTimeout},
	}
}

// committer returns the environment that names the service as the committer.
func (repo *Repository) committer() []string {
	id := repo.Identity()
	return []string{"GIT_COMMITTER_NAME=" + id.Name, "GIT_COMMITTER_EMAIL=" + id.Email}
}

// Locked calls fn while this process is the only one of ours that changes the
// repository as a whole. A git process that is to inherit the lock gets hold:
// then no other process enters while that git is alive, even if this one was
// killed. It waits for 30 seconds. Error: ErrBusy.
func (repo *Repository) Locked(ctx context.Context, fn func(hold []*os.File) error) error {
	repo.mu.Lock()
	defer repo.mu.Unlock()
	wait, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	f, err := git.LockFile(wait, repo.Own("lock"))
	if err != nil {
		return err
	}
	defer f.Close()
	return fn([]*os.File{f})
}

// Head returns the commit at the tip of a branch, as last fetched. Error: ErrNoBranch.
func (repo *Repository) Head(ctx context.Context, b git.Branch) (git.OID, error) {
	o, err := repo.resolve(ctx, b.Ref())
	if errors.Is(err, git.ErrNotFound) {
		return "", fmt.Errorf("branch %s: %w", b, git.ErrNoBranch)
	}
	return o, err
}

// resolve returns the commit that a full ref name leads to. Error: ErrNotFound.
func (repo *Repository) resolve(ctx context.Context, ref string) (git.OID, error) {
	if o, ok := repo.loose(ctx, ref); ok {
		return o, nil
	}
	out, err := repo.Git(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", ref+"^{commit}")
	if git.ExitCode(err) == 1 {
		return "", fmt.Errorf("%s: %w", ref, git.ErrNotFound)
	}
	if err != nil {
		return "", err
	}
	return git.ParseOID(strings.TrimSpace(string(out)))
}

// loose returns the commit of a ref that has a file of its own, as nearly every
// branch that moves does; false if git has to be asked. Starting a git process
// takes longer than everything else about a ref.
func (repo *Repository) loose(ctx context.Context, ref string) (git.OID, bool) {
	text, err := os.ReadFile(filepath.Join(repo.common, filepath.FromSlash(ref)))
	if err != nil {
		return "", false
	}
	o, err := git.ParseOID(strings.TrimSuffix(string(text), "\n"))
	if err != nil {
		return "", false // a symbolic ref
	}
	r := repo.NewReader(ctx)
	defer r.Close()
	_, err = r.Commit(o)
	return o, err == nil // a tag leads to a commit
}

// UserName returns the user.name of the person's configuration, or "" if it is not set.
func (repo *Repository) UserName(ctx context.Context) string {
	out, err := git.Run(ctx, git.Command{Dir: repo.common, GitDir: repo.common, Personal: true}, "config", "--get", "user.name")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}
