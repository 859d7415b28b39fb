package repository

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"
)

// Who builds in a project. Each has caches of its own: what a model runs while it
// works must not be able to forge what verify finds, or what a person builds.
const (
	byCommands = "commands" // of pfl-forge.yaml
	byModels   = "models"
)

// cacheVariables name directories that an operator has all commands share.
var cacheVariables = []string{"GOCACHE", "GOMODCACHE", "npm_config_cache"}

// cache is the directory of all these caches.
func (r *Repository) cache(by string) string { return filepath.Join(r.dir, "cache", by) }

// environment is what processes of a project see beside the basic environment:
// caches that stay from call to call, because HOME does not, and what the host adds,
// which wins for commands. What a model runs gets modules from there too, to read.
func (r *Repository) environment(by string, more ...string) []string {
	dir := r.cache(by)
	own := []string{
		"XDG_CACHE_HOME=" + dir,
		"GOMODCACHE=" + filepath.Join(dir, "go-mod"),
		"npm_config_cache=" + filepath.Join(dir, "npm"),
	}
	if by == byCommands {
		return slices.Concat(own, r.host.Env, more)
	}
	theirs := slices.DeleteFunc(slices.Clone(r.host.Env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains(cacheVariables, name)
	})
	proxy := "GOPROXY=file://" + r.modules() + "," + cmp.Or(r.host.variable("GOPROXY"), "https://proxy.golang.org,direct")
	return slices.Concat(own, theirs, []string{proxy}, more)
}

// modules is where the commands' Go modules are kept as they were downloaded, which is
// what a module proxy offers.
func (r *Repository) modules() string {
	dir := cmp.Or(r.host.variable("GOMODCACHE"), filepath.Join(r.cache(byCommands), "go-mod"))
	return filepath.Join(dir, "cache", "download")
}

// variable returns what Env sets a variable to; "" if it does not.
func (h *Host) variable(name string) string {
	for _, kv := range h.Env {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return ""
}
