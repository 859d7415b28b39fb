package jobs

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/process"
	"github.com/pfl-forge/pfl-forge/agent/sandbox"
	"github.com/pfl-forge/pfl-forge/config"
	"github.com/pfl-forge/pfl-forge/internal/demand"
)

// confinement remembers the machine's sandboxes, and the directories of its system.
type confinement struct {
	once   sync.Once
	system []sandbox.Mount
	home   string // of the person or service that we are

	mu    sync.Mutex
	tried map[sandbox.Network]tried
}

// tried is an answer of the machine.
type tried struct {
	err error // why there is no sandbox with such a network; nil if there is
	at  time.Time
}

// refusedFor is how long it is believed that the machine offers no sandbox: a
// person may allow one at any time.
const refusedFor = 10 * time.Second

// view returns the mounts of the system's directories, and the person's home
// directory.
func (c *confinement) view() (system []sandbox.Mount, home string) {
	c.once.Do(func() {
		c.home = os.Getenv("HOME")
		c.system = sandbox.System(os.Getenv("PATH"), c.home)
	})
	return c.system, c.home
}

// offers returns nil if the executor can run a command with this kind of network, and
// else why not. Each kind is tried once for each process, again where there was only no
// room, and after a while where there was none.
func (c *confinement) offers(ctx context.Context, e process.Executor, n sandbox.Network) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	last, known := c.tried[n]
	if known && (last.err == nil || time.Since(last.at) < refusedFor) {
		return last.err
	}
	err := e.Probe(ctx, n)
	if ctx.Err() != nil || errors.Is(err, process.ErrLost) {
		return err // which says nothing about the machine
	}
	if c.tried == nil {
		c.tried = map[sandbox.Network]tried{}
	}
	c.tried[n] = tried{err, time.Now()}
	return err
}

// place describes where a command runs.
type place struct {
	// dir is its checkout, or its scratch directory if it has none.
	dir string
	// readOnly mounts dir read-only.
	readOnly bool
	// scratch has HOME and temporary files, private to the call.
	scratch string
	// state has the agent's session files; empty: there are none.
	state string
	// by says who builds, byCommands or byModels.
	by string
	// layer is the directory for everything that it writes to caches; in the state directory.
	layer string
	// network is the access that the policy allows.
	network config.Network
}

// confine returns the sandbox of one command, as sandbox does, and notes in the Result what
// the command runs in. Of an attempt's commands the weakest counts.
func (j *Job) confine(ctx context.Context, p place) (*sandbox.Spec, error) {
	spec, err := j.sandbox(ctx, p)
	switch {
	case err != nil: // nothing runs
	case spec == nil:
		j.Result.Executor = forge.ExecutorNone
	case j.Result.Executor == "":
		j.Result.Executor = j.host.Owner.Executor().Name()
	}
	return spec, err
}

// sandbox returns the sandbox of one command: the system's directories read-only, the
// directories that it works in, and the paths that the project's configuration
// grants. It returns nil if the user of the machine wants none, and if none can be made for
// a recipe of that user's own. Otherwise, what cannot have one is not run: the error is a
// forge.FailSandbox. A network that the policy takes away is only to be had with one.
func (j *Job) sandbox(ctx context.Context, p place) (*sandbox.Spec, error) {
	policy := j.Config.Policy
	if j.host.Sandbox == demand.Require {
		policy.Sandbox, policy.SandboxRead, policy.SandboxWrite = config.SandboxRequire, nil, nil
	}
	needed := policy.Sandbox == config.SandboxRequire || p.network != config.NetworkFull
	if unconfined(j) && !needed {
		return nil, nil //nolint:nilnil // no sandbox is an answer
	}
	c := j.host.confinement
	spec := sandbox.Spec{Network: sandbox.NetworkFull}
	if p.network != config.NetworkFull {
		spec.Network = sandbox.NetworkNone
	}
	if err := c.offers(ctx, j.host.Owner.Executor(), spec.Network); err != nil {
		if ctx.Err() != nil || errors.Is(err, process.ErrLost) {
			return nil, err
		}
		if p.by == byCommands && own(j) && !needed {
			return nil, nil //nolint:nilnil // the person could as well run it by hand
		}
		return nil, noSandbox(j, err, needed)
	}
	if g := j.host.Gateway; g != nil && p.by == byModels {
		spec.Listen, spec.Serve = g.Address(), g.Serve
	}
	system, home := c.view()
	spec.Mounts = slices.Concat(system, j.grants(&policy, home), j.private(), p.mounts())
	for _, dir := range j.Store.ObjectDirs() {
		spec.Mounts = append(spec.Mounts, sandbox.Path(dir, sandbox.ReadOnly)...)
	}
	cached, err := j.cacheMounts(ctx, p.by, p.layer)
	spec.Mounts = append(spec.Mounts, cached...)
	return &spec, err
}

// unconfined reports whether the user of the machine wants no sandbox, and the project does
// not require one.
func unconfined(j *Job) bool {
	return j.host.Sandbox == demand.Unconfined && j.Config.Policy.Sandbox != config.SandboxRequire
}

// own reports whether all that the job runs is the person's own: in their repository on their
// machine, a recipe that they wished for. A service has nothing of its own, since others
// send it intents and push to its repositories.
func own(j *Job) bool {
	if m, ok := j.Command.Input.(*forge.MergeInput); ok {
		foreign := slices.ContainsFunc(m.Ahead, func(c forge.QueueMerge) bool { return !c.Scripted }) // runs in a trial, too
		return j.Store.WorkTree() != "" && m.Change != nil && m.Change.Scripted && !foreign
	}
	if r, ok := j.Command.Input.(*forge.RebaseInput); ok && r.Adopted != nil { // whoever may push to its branch made it
		return false
	}
	return j.Store.WorkTree() != "" && j.Command.Intent.Scripted()
}

// noSandbox returns the failure of a command that is not run because of err, with what a
// person can do: an operator where the service requires a sandbox, whoever looks after the
// project where that does (needed), and otherwise the user of the machine.
func noSandbox(j *Job, err error, needed bool) error {
	e := j.host.Owner.Executor()
	switch {
	case j.host.Sandbox != demand.Require && needed:
		return agent.Fail(forge.FailSandbox,
			"%v; see pfl-forge doctor for what this machine offers. Allow it %s, or change policy in %s", err, e.Needs(), config.FileName)
	case j.host.Sandbox != demand.Require:
		return agent.Fail(forge.FailSandbox,
			"%v. Without a sandbox, nothing runs here that an agent or another system wrote: it would reach your files, keys and logins. "+
				"Allow %s (pfl-forge doctor says more), or use a machine or container without your files and logins. "+
				"To run it unconfined on this one all the same, set %s=%s where pfl-forge runs; no file of a repository can. Then: pfl-forge retry %s",
			err, e.Needs(), demand.Variable, demand.Unconfined, j.Command.To.Intent)
	case e.Name() == forge.ExecutorPods:
		return agent.Fail(forge.FailSandbox, "%v; nothing runs elsewhere than in a pod here. Allow this service %s", err, e.Needs())
	}
	return agent.Fail(forge.FailSandbox,
		"%v; this service runs nothing without a sandbox (--sandbox=require, FORGE_SANDBOX). On Kubernetes, give it --pod-template (FORGE_POD_TEMPLATE) "+
			"for a pod for each command; elsewhere, allow it %s. pfl-forge doctor --server says what each worker has", err, e.Needs())
}

// mounts returns the directories of the call itself. Where a call has no checkout,
// its scratch directory is also where it works, and stays writable.
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

// private returns the directories that stay hidden even inside of a granted path: the
// service's state and credentials, and the repository with its .forge folder.
func (j *Job) private() []sandbox.Mount {
	var out []sandbox.Mount
	for _, dir := range append([]string{j.host.StateDir, j.Store.WorkTree(), j.Store.Dir()}, j.host.Private...) {
		if actual, err := filepath.EvalSymlinks(dir); dir != "" && err == nil {
			out = append(out, sandbox.Mount{Path: actual, Kind: sandbox.Hidden})
		}
	}
	return out
}

// grants returns the paths that the project's configuration adds, without those that
// are private.
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

// isPrivate reports whether a path leads into a directory that no configuration can
// grant. A path that does not exist counts as private.
func (j *Job) isPrivate(path string) bool {
	actual, err := filepath.EvalSymlinks(path)
	if err != nil {
		return true // there is nothing
	}
	dirs := []string{j.host.StateDir, j.Store.Dir()}
	for _, dir := range j.host.Private {
		if at, err := filepath.EvalSymlinks(dir); dir != "" && err == nil {
			dirs = append(dirs, at)
		}
	}
	if tree := j.Store.WorkTree(); tree != "" {
		dirs = append(dirs, filepath.Join(tree, ".forge"))
	}
	return slices.ContainsFunc(dirs, func(dir string) bool {
		rel, err := filepath.Rel(dir, actual)
		return err == nil && filepath.IsLocal(rel)
	})
}
