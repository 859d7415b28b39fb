package repository

import (
	"path/filepath"
	"slices"
)

// Who builds in a project. Each has caches of its own: what a model runs while it
// works must not be able to forge what verify finds.
const (
	byCommands = "commands" // of pfl-forge.yaml
	byModels   = "models"
)

// cache is the directory of all these caches.
func (r *Repository) cache(by string) string { return filepath.Join(r.dir, "cache", by) }

// environment is what processes of a project see beside the basic environment:
// caches that stay from call to call, because HOME does not, and what the host adds,
// which wins.
func (r *Repository) environment(by string, more ...string) []string {
	dir := r.cache(by)
	return slices.Concat([]string{
		"XDG_CACHE_HOME=" + dir,
		"GOMODCACHE=" + filepath.Join(dir, "go-mod"),
		"npm_config_cache=" + filepath.Join(dir, "npm"),
	}, r.host.Env, more)
}
