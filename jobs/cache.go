package jobs

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"
)

// Who builds in a project. Each has caches of its own: what a model runs while it
// works must not be able to forge what verify finds, or what a person builds.
const (
	// byCommands are caches of the commands in pfl-forge.yaml.
	byCommands = "commands"
	// byModels are caches of the programs that a model starts.
	byModels = "models"
)

// cacheVariables name the directories that an operator lets all commands share.
var cacheVariables = []string{"GOCACHE", "GOMODCACHE", "npm_config_cache"}

// cache returns the directory of one builder's caches.
func (r *Repository) cache(by string) string { return filepath.Join(r.dir, "cache", by) }

// environment returns the variables that processes of a project get beside the basic
// ones: caches that stay from call to call, because HOME does not, and the host's
// Env, which wins for commands. A model's processes read downloaded Go modules from
// the commands' cache, through a file proxy, but cannot write there.
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

// modules returns the directory of the commands' downloaded Go modules, in the layout
// of a module proxy.
func (r *Repository) modules() string {
	dir := cmp.Or(r.host.variable("GOMODCACHE"), filepath.Join(r.cache(byCommands), "go-mod"))
	return filepath.Join(dir, "cache", "download")
}

// variable returns the value of a variable in Env; "" if it is not set.
func (h *Host) variable(name string) string {
	for _, kv := range h.Env {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return ""
}
