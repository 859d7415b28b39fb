package admin

import (
	"os"
	"path/filepath"

	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/local"
	"github.com/pfl-forge/pfl-forge/config"
	"github.com/pfl-forge/pfl-forge/git"
)

// checkCheckouts says how checkouts are made here, and why. Each way works.
func checkCheckouts(repo *local.Repository, cfg *config.Project) finding {
	const plain = "all files are written for each: "
	if cfg.WorktreeOverlay == config.OverlayOff {
		return finding{"checkouts", healthy, plain + "worktree_overlay is off", ""}
	}
	if err := git.ProbeOverlay(probeDir(repo, cfg)); err != nil {
		return finding{"checkouts", healthy, plain + err.Error(), ""}
	}
	return finding{"checkouts", healthy, "overlay mounts over one tree of the base branch", ""}
}

// probeDir returns a directory on the file system of the checkouts, beside what a person sees.
func probeDir(repo *local.Repository, cfg *config.Project) string {
	if !filepath.IsAbs(cfg.WorktreeDir) {
		return repo.Store.Dir()
	}
	dir := filepath.Dir(cfg.WorktreeDir)
	for dir != filepath.Dir(dir) {
		if _, err := os.Stat(dir); err == nil {
			break
		}
		dir = filepath.Dir(dir)
	}
	return dir
}
