package local

import (
	"context"
	"path/filepath"

	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/leftovers"
	"github.com/pfl-forge/pfl-forge/forgedir/layout"
)

// Places returns the folders, refs and objects in which intents leave something
// in the session's repository. While a run goes on in another process, its
// checkouts and the state of its agents are left out: that run removes them by
// itself.
func (s *Session) Places(ctx context.Context) (*leftovers.Places, error) {
	dir := filepath.Join(s.Repo.Root, layout.Dir)
	p := &leftovers.Places{Bus: s.Bus, Store: s.Repo.Store, Dirs: []string{filepath.Join(dir, "logs")}}
	if !s.Owner() {
		return p, nil
	}
	base, err := s.Repo.Base(ctx)
	if err != nil {
		return nil, err
	}
	trees := filepath.Join(s.Repo.Root, base.Config.WorktreeDir)
	if filepath.IsAbs(base.Config.WorktreeDir) {
		trees = filepath.Join(base.Config.WorktreeDir, string(s.Repo.Project))
	}
	p.Dirs = append(p.Dirs, trees, filepath.Join(trees, ".own"),
		filepath.Join(dir, stateDir, "projects", string(s.Repo.Project), "state"))
	return p, nil
}
