package repository

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/process"
	"github.com/pfl-forge/pfl-forge/agent/sandbox"
	"github.com/pfl-forge/pfl-forge/config"
)

// confinement is what this machine offers, found out when it is asked for first.
type confinement struct {
	once   sync.Once
	system []sandbox.Mount
	home   string // of the person or service that we are

	mu    sync.Mutex
	tried map[sandbox.Network]error // why there is no sandbox with such a network; nil if there is

	warn sync.Once
}

// view returns what every command may see, and the home that is not part of it.
func (c *confinement) view() (system []sandbox.Mount, home string) {
	c.once.Do(func() {
		c.home = os.Getenv("HOME")
		c.system = sandbox.System(os.Getenv("PATH"), c.home)
	})
	return c.system, c.home
}

// offers really makes a sandbox, once, because no other question to the kernel has a
// reliable answer. An error says why there is none.
func (c *confinement) offers(ctx context.Context, n sandbox.Network) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	err, known := c.tried[n]
	if known {
		return err
	}
	if err = process.Probe(ctx, n); ctx.Err() != nil {
		return err // which says nothing about the machine
	}
	if c.tried == nil {
		c.tried = map[sandbox.Network]error{}
	}
	c.tried[n] = err
	return err
}

// place is where a command works.
type place struct {
	dir      string // the checkout
	readOnly bool   // it must not change it
	scratch  string // private to the call
	state    string // kept from call to call; may be empty
	by       string // whose caches it uses
	network  config.Network
}

// confine returns what a command sees of the machine: the system, what it works with, and
// what the project's configuration grants. It returns nil where there is to be no sandbox.
func (j *Job) confine(ctx context.Context, p place) (*sandbox.Spec, error) {
	policy := j.Config.Policy
	if j.host.RequireSandbox {
		policy.Sandbox, policy.SandboxRead, policy.SandboxWrite = config.SandboxRequire, nil, nil
	}
	if policy.Sandbox == config.SandboxOff {
		return nil, nil //nolint:nilnil // no sandbox is an answer
	}
	c := j.host.confinement
	spec := sandbox.Spec{Network: sandbox.NetworkFull}
	if p.network != config.NetworkFull {
		spec.Network = sandbox.NetworkNone
	}
	if err := c.offers(ctx, spec.Network); err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		if policy.Sandbox == config.SandboxRequire || spec.Network == sandbox.NetworkNone {
			return nil, agent.Fail(forge.FailSandbox,
				"%v; see pfl-forge doctor for what this machine offers. Allow it user namespaces, or change policy in %s", err, config.FileName)
		}
		c.warn.Do(func() { j.host.Log.Warn("agents and commands run without a sandbox", "reason", err) })
		return nil, nil //nolint:nilnil // as said in policy.sandbox
	}
	if g := j.host.Gateway; g != nil && p.network == config.NetworkModel {
		spec.Listen, spec.Serve = g.Address(), g.Serve
	}
	system, home := c.view()
	spec.Mounts = slices.Concat(system, j.grants(&policy, home), j.private(), p.mounts())
	for _, dir := range j.Store.ObjectDirs() {
		spec.Mounts = append(spec.Mounts, sandbox.Path(dir, sandbox.ReadOnly)...)
	}
	caches, err := j.caches(p.by)
	spec.Mounts = append(spec.Mounts, caches...)
	return &spec, err
}

// mounts are of the call itself.
func (p *place) mounts() []sandbox.Mount {
	kind := sandbox.Writable
	if p.readOnly && p.dir != p.scratch { // where a call without a checkout works, its HOME is
		kind = sandbox.ReadOnly
	}
	out := sandbox.Path(p.dir, kind)
	if p.dir != p.scratch {
		out = append(out, sandbox.Path(p.scratch, sandbox.Writable)...)
	}
	if p.state != "" && os.MkdirAll(p.state, 0o700) == nil {
		out = append(out, sandbox.Path(p.state, sandbox.Writable)...)
	}
	tmp := filepath.Join(p.scratch, "home", "tmp")
	_ = os.MkdirAll(tmp, 0o700) // else the sandbox says so
	return append(out,
		sandbox.Mount{Path: "/tmp", Kind: sandbox.Writable, To: tmp}, sandbox.Mount{Path: "/var/tmp", Kind: sandbox.Writable, To: tmp})
}

// private is what nothing may show, also where it is in something that is shown: the
// service's state, and the repository with what pfl-forge keeps there.
func (j *Job) private() []sandbox.Mount {
	var out []sandbox.Mount
	for _, dir := range []string{j.host.StateDir, j.Store.WorkTree(), j.Store.Dir()} {
		if actual, err := filepath.EvalSymlinks(dir); dir != "" && err == nil {
			out = append(out, sandbox.Mount{Path: actual, Kind: sandbox.Hidden})
		}
	}
	return out
}

// grants is what the project's configuration adds.
func (j *Job) grants(policy *config.Policy, home string) []sandbox.Mount {
	var out []sandbox.Mount
	add := func(path string, kind sandbox.Kind) {
		if rest, ok := strings.CutPrefix(path, "~/"); ok {
			path = filepath.Join(home, rest)
		}
		if !j.isPrivate(path) {
			out = append(out, sandbox.Path(path, kind)...)
		}
	}
	for _, path := range policy.SandboxRead {
		add(path, sandbox.ReadOnly)
	}
	for _, path := range policy.SandboxWrite {
		add(path, sandbox.Writable)
	}
	return out
}

// caches are those of who works. Those that an operator has all commands share are not
// for what a model runs, except the modules, which it may read.
func (j *Job) caches(by string) ([]sandbox.Mount, error) {
	dirs := []string{j.cache(by)}
	for _, name := range cacheVariables {
		if dir := j.host.variable(name); by == byCommands && filepath.IsAbs(dir) {
			dirs = append(dirs, dir)
		}
	}
	var out []sandbox.Mount
	for _, dir := range dirs {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
		out = append(out, sandbox.Path(dir, sandbox.Writable)...)
	}
	if by == byModels {
		out = append(out, sandbox.Path(j.modules(), sandbox.ReadOnly)...)
	}
	return out, nil
}

// isPrivate reports whether a path leads to what no configuration can grant.
func (j *Job) isPrivate(path string) bool {
	actual, err := filepath.EvalSymlinks(path)
	if err != nil {
		return true // there is nothing
	}
	dirs := []string{j.host.StateDir, j.Store.Dir()}
	if tree := j.Store.WorkTree(); tree != "" {
		dirs = append(dirs, filepath.Join(tree, ".forge"))
	}
	return slices.ContainsFunc(dirs, func(dir string) bool {
		rel, err := filepath.Rel(dir, actual)
		return err == nil && filepath.IsLocal(rel)
	})
}
