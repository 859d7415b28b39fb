package jobs

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge/agent/sandbox"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/jobs/caches"
)

// Who builds in a project. What a model runs while it works must not be able to forge what verify
// finds.
const (
	// byCommands are the commands in pfl-forge.yaml.
	byCommands = "commands"
	// byModels are the programs that a model starts.
	byModels = "models"
)

// cacheVariables name the directories that an operator lets all commands read.
var cacheVariables = []string{"GOCACHE", goModules, "npm_config_cache"}

// goModules names the cache of Go's modules.
const goModules = "GOMODCACHE"

// modulesPart is the part of it that is laid out as a module proxy.
var modulesPart = filepath.Join("cache", "download")

// mergedTrees is how many of the newest commits of the base branch may be those
// that a layer of caches waits for.
const mergedTrees = 500

// shared returns the caches that the operator names.
func (h *Host) shared() []caches.Shared {
	var out []caches.Shared
	for _, name := range cacheVariables {
		if dir := h.variable(name); filepath.IsAbs(dir) {
			out = append(out, caches.Shared{Name: name, Dir: filepath.Clean(dir)})
		}
	}
	return out
}

// environment returns the variables that processes of a project get beside the basic
// ones: caches that stay from call to call, because HOME does not, and the host's
// Env, which wins for commands. A model's processes do not see the caches that the operator shares,
// apart from Go's modules, through a file proxy.
func (r *Repository) environment(by string, more ...string) []string {
	dir := r.caches.Own()
	own := []string{
		"XDG_CACHE_HOME=" + dir,
		goModules + "=" + filepath.Join(dir, "go-mod"),
		"npm_config_cache=" + filepath.Join(dir, "npm"),
	}
	if by == byCommands {
		return slices.Concat(own, r.host.Env, more)
	}
	theirs := slices.DeleteFunc(slices.Clone(r.host.Env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains(cacheVariables, name)
	})
	if dir := r.host.variable(goModules); filepath.IsAbs(dir) {
		theirs = append(theirs, "GOPROXY=file://"+filepath.Join(dir, modulesPart)+","+cmp.Or(r.host.variable("GOPROXY"), "https://proxy.golang.org,direct"))
	}
	return slices.Concat(own, theirs, more)
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

// cacheMounts returns the caches as a builder sees them that writes to the given layer. What a
// model runs sees the Go modules of a cache that an operator shares, and nothing else of it.
func (j *Job) cacheMounts(ctx context.Context, by, layer string) ([]sandbox.Mount, error) {
	if err := j.caches.TakeOver(ctx, merged(j.Repository)); err != nil {
		j.host.Log.WarnContext(ctx, "cannot keep what commands cached; it is built again", "project", j.Project, "error", err)
	}
	if by == byCommands {
		return j.caches.Mounts(layer)
	}
	out, err := j.caches.OwnMounts(layer)
	if err != nil {
		return nil, err
	}
	for _, s := range j.host.shared() {
		if s.Name == goModules {
			m, err := j.caches.Below(layer, s, modulesPart)
			return append(out, m), err
		}
	}
	return out, nil
}

// keepLayer keeps the caches of commands in a checkout of a commit, once that is merged. Where it
// fails, they are built again.
func keepLayer(ctx context.Context, j *Job, layer string, commit git.OID) {
	if commit == "" {
		return
	}
	tree, err := j.Store.Tree(ctx, commit)
	if err == nil {
		err = j.caches.Keep(ctx, layer, tree, merged(j.Repository))
	}
	if err != nil {
		j.host.Log.WarnContext(ctx, "cannot keep what commands cached; it is built again", "project", j.Project, "error", err)
	}
}

// merged returns a function for the trees of the newest commits of the base branch, as far as this
// process has fetched them.
func merged(r *Repository) caches.Merged {
	return func(ctx context.Context) ([]git.OID, error) {
		base, err := r.Base(ctx)
		if err != nil {
			return nil, err
		}
		tip, err := r.Store.Head(ctx, base)
		if err != nil {
			return nil, err
		}
		return r.Store.Trees(ctx, tip, mergedTrees)
	}
}
