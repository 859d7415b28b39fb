package trust

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"

	"github.com/pfl-forge/pfl-forge/config"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/store"
)

// maxConfig bounds pfl-forge.yaml, in bytes.
const maxConfig = 1 << 20

// ErrUntrusted is the error of a configuration that no person has trusted here.
var ErrUntrusted = errors.New("what this repository brings is not trusted on this machine yet; nothing was run")

// Guard says which configurations of one repository are trusted. It is safe for concurrent use.
type Guard struct {
	store Store
	repo  *store.Store
	root  string

	mu sync.Mutex // workers check configurations at the same time
	// passing are digests that are trusted as long as the process lives: FORGE_TRUST, and what
	// a person said yes to although it could not be remembered.
	passing []string
}

// NewGuard returns the guard of a repository.
func NewGuard(s Store, repo *store.Store) (*Guard, error) {
	root := repo.WorkTree()
	if root == "" {
		root = repo.Dir()
	}
	root, err := filepath.EvalSymlinks(root)
	if err != nil {
		return nil, err
	}
	return &Guard{store: s, repo: repo, root: root}, nil
}

// Store returns the folder of the guard's store, which agents must not see; empty if there is
// none.
func (g *Guard) Store() string { return g.store.Dir() }

// identity returns the path of the file with the repository's random id.
func (g *Guard) identity() string { return g.repo.Own("id") }

// Pass trusts a content as long as the process lives.
func (g *Guard) Pass(digest string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.passing = append(g.passing, digest)
}

// Check returns nil if a configuration runs and weakens nothing, or exactly what a person
// trusted. Otherwise the error wraps ErrUntrusted.
func (g *Guard) Check(ctx context.Context, p *config.Project) error {
	digest := config.Digest(p.Powers())
	if digest == "" {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if slices.Contains(g.passing, digest) {
		return nil
	}
	// The store is read for each configuration: trust that was given, or taken back, in another
	// terminal counts in a run that goes on.
	at := place{g.root, readIdentity(g.identity())}
	r := g.store.load(at)
	if r == nil {
		return ErrUntrusted
	}
	if slices.Contains(r.Digests, digest) {
		return nil
	}
	// It is another content than any that the person said yes to. It is trusted all the same if
	// the person committed it here, out of one of those.
	moves, err := g.repo.HeadLog()
	if err != nil {
		return fmt.Errorf("%w (%w)", ErrUntrusted, err)
	}
	if len(moves) <= r.Moves { // or git has dropped some: then no move is known to be newer
		return ErrUntrusted
	}
	all, err := own(r.Digests, moves[r.Moves:], g.history(ctx))
	if err != nil {
		return fmt.Errorf("%w (%w)", ErrUntrusted, err)
	}
	if !slices.Contains(all, digest) {
		return ErrUntrusted
	}
	// Only a shortcut for the next time. What lies between is still looked at then, since the
	// number of moves stays.
	_ = g.store.save(at, record{Digests: append(r.Digests, digest), Moves: r.Moves})
	return nil
}

// Trust remembers that a person trusts a configuration in this repository, and from now on what
// they commit there.
func (g *Guard) Trust(p *config.Project) error {
	digest := config.Digest(p.Powers())
	g.Pass(digest)
	id, err := makeIdentity(g.identity())
	if err != nil {
		return err
	}
	at := place{g.root, id}
	next := record{}
	if r := g.store.load(at); r != nil {
		next.Digests = slices.DeleteFunc(r.Digests, func(d string) bool { return d == digest })
	}
	if digest != "" {
		next.Digests = append(next.Digests, digest)
	}
	moves, err := g.repo.HeadLog()
	if err != nil {
		return err
	}
	next.Moves = len(moves)
	return g.store.save(at, next)
}

// Revoke ends all trust in this repository.
func (g *Guard) Revoke() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.passing = nil
	return g.store.forget(place{root: g.root})
}

// history returns the commits of the repository for the rule.
func (g *Guard) history(ctx context.Context) history {
	seen := map[git.OID]string{}
	return history{
		digest: func(o git.OID) (string, error) {
			if d, ok := seen[o]; ok {
				return d, nil
			}
			d, err := g.digestAt(ctx, o)
			seen[o] = d
			return d, err
		},
		parents: func(o git.OID) ([]git.OID, error) {
			r := g.repo.NewReader(ctx)
			defer r.Close()
			c, err := r.Commit(o)
			return c.Parents, err
		},
	}
}

// digestAt returns the digest of the configuration of a commit. One that is wrong, and so runs
// nothing, has one of its own: a person may commit it, and mend it.
func (g *Guard) digestAt(ctx context.Context, o git.OID) (string, error) {
	if !g.repo.Has(ctx, o) { // it cannot be said what it had
		return "", fmt.Errorf("commit %s: %w", o.Short(), git.ErrNotFound)
	}
	data, err := g.repo.ReadFile(ctx, o, config.FileName, maxConfig)
	if errors.Is(err, git.ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	p, err := config.Parse(data)
	if err != nil {
		sum := sha256.Sum256(data)
		return "wrong:" + hex.EncodeToString(sum[:]), nil //nolint:nilerr // as said
	}
	return config.Digest(p.Powers()), nil
}
