package git

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Store is a service's repository. Opened by OpenLocal it is the person's own repository, origin and object
// store at once; opened by OpenOrigin it is a bare clone that belongs to the service. Its methods are safe
// for concurrent use, also by several processes.
type Store struct {
	common   string // the repository: refs, objects, configuration
	workTree string // the working tree that belongs to it, empty when bare
	hub      string // our own git directory, which reads and writes the repository's objects and nothing else of it
	origin   *origin
	identity Identity
	lockWait time.Duration

	readers catFiles
	mu      sync.Mutex // serialises locked within the process; the flock does it between processes
}

// LocalConfig configures OpenLocal.
type LocalConfig struct {
	Path      string   // a directory in the working tree, or a bare repository
	AllowBare bool     // a bare repository is good enough
	Identity  Identity // who commits what the service makes; default pfl-forge
}

// OpenLocal opens the repository that contains cfg.Path and repairs a merge that was cut off.
// Errors: ErrNotRepository, ErrBare, ErrUnsupported. Inspect says more.
func OpenLocal(ctx context.Context, cfg LocalConfig) (*Store, error) {
	path, err := filepath.Abs(cfg.Path)
	if err != nil {
		return nil, err
	}
	s, err := discover(ctx, path)
	if err != nil {
		return nil, err
	}
	if s.workTree == "" && !cfg.AllowBare {
		return nil, fmt.Errorf("%s: %w", path, ErrBare)
	}
	s.identity = cfg.Identity.orDefault()
	if err := s.setup(ctx); err != nil {
		return nil, err
	}
	return s, s.Repair(ctx)
}

// discover finds the repository around path, or at path when it is a bare one.
func discover(ctx context.Context, path string) (*Store, error) {
	query := []string{"rev-parse", "--path-format=absolute", "--is-bare-repository", "--git-common-dir"}
	out, err := run(ctx, command{dir: path}, query...)
	if err != nil && exitCode(err) == 128 {
		out, err = run(ctx, command{dir: path, gitDir: path}, query...)
	}
	bare, common, found := strings.Cut(strings.TrimSuffix(string(out), "\n"), "\n") // a path may hold a newline
	if err != nil || !found {
		if ctx.Err() != nil {
			return nil, err
		}
		return nil, fmt.Errorf("%s: %w", path, errors.Join(ErrNotRepository, err))
	}
	s := &Store{common: common}
	if bare == "true" {
		return s, nil
	}
	s.workTree, err = mainWorkTree(ctx, path, common)
	return s, err
}

// setup makes the hub and checks the format. Nothing in here changes what git shows to a person.
func (s *Store) setup(ctx context.Context) error {
	s.lockWait = 30 * time.Second
	s.hub = filepath.Join(s.common, "pfl-forge", "hub.git")
	for _, key := range []string{"extensions.partialClone", "extensions.objectFormat"} {
		out, err := s.refs(ctx, "config", "--default", "", "--get", key)
		if err != nil {
			return err
		}
		if v := strings.TrimSpace(string(out)); v != "" && v != "sha1" {
			return fmt.Errorf("%s: %s is %s: %w", s.common, key, v, ErrUnsupported)
		}
	}
	return s.writeHub()
}

const hubConfig = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = true\n"

func (s *Store) writeHub() error {
	for _, dir := range []string{"refs/heads", "info", "quarantine"} {
		if err := os.MkdirAll(filepath.Join(s.hub, dir), 0o700); err != nil {
			return err
		}
	}
	files := map[string]string{
		"HEAD":         "ref: refs/heads/none\n",
		"config":       hubConfig,
		"info/exclude": excludeForge,
	}
	if b, err := os.ReadFile(filepath.Join(s.common, "shallow")); err == nil {
		files["shallow"] = string(b)
	} else if err := ignoreMissing(os.Remove(filepath.Join(s.hub, "shallow"))); err != nil {
		return err
	}
	for name, content := range files {
		if err := writeFile(filepath.Join(s.hub, name), []byte(content)); err != nil {
			return err
		}
	}
	return s.sweepQuarantine()
}

// sweepQuarantine removes what killed processes left; another process may be using what is young.
func (s *Store) sweepQuarantine() error {
	entries, err := os.ReadDir(s.quarantine())
	for _, e := range entries {
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > 24*time.Hour {
			_ = removeAll(filepath.Join(s.quarantine(), e.Name()))
		}
	}
	return err
}

// Close ends the git processes that wait for the next call. A Store that is used afterwards starts them again. Without
// Close they end by themselves soon after the last call, or with this process.
func (s *Store) Close() { s.readers.end() }

// Dir returns the git directory of the repository, the common one of all its working trees.
func (s *Store) Dir() string { return s.common }

// WorkTree returns the path of the person's main working tree, or "" in a bare repository or a clone of the service.
func (s *Store) WorkTree() string { return s.workTree }

func (s *Store) objects() string { return filepath.Join(s.common, "objects") }

// plumb returns a command on objects alone. No ref, configuration, hook, graft or attribute file of the repository has an
// effect on it.
func (s *Store) plumb() command {
	return command{dir: s.hub, gitDir: s.hub, env: []string{"GIT_OBJECT_DIRECTORY=" + s.objects()}}
}

// refs runs a command on the repository itself, under the configuration of the person whose it is.
func (s *Store) refs(ctx context.Context, args ...string) ([]byte, error) {
	return run(ctx, command{dir: s.common, gitDir: s.common, env: s.identityEnv()}, args...)
}

func (s *Store) identityEnv() []string {
	id := s.identity.orDefault()
	return []string{"GIT_COMMITTER_NAME=" + id.Name, "GIT_COMMITTER_EMAIL=" + id.Email}
}

// locked runs fn while this process is the only one of ours that changes the repository as a whole.
func (s *Store) locked(ctx context.Context, fn func(hold []*os.File) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	wait, cancel := context.WithTimeout(ctx, s.lockWait)
	defer cancel()
	f, err := lockFile(wait, filepath.Join(s.common, "pfl-forge", "lock"))
	if err != nil {
		return err
	}
	defer f.Close()
	return fn([]*os.File{f})
}
