package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pfl-forge/pfl-forge/agent/sandbox"
	"github.com/pfl-forge/pfl-forge/internal/demand"
)

// cgroup has the control groups of a command: they limit its memory, and how many
// processes it may have at once where nothing else does. A nil one does nothing.
type cgroup struct {
	dirs []string
	// limits are the controllers that limit something.
	limits []string
}

// The controllers that limit commands.
const (
	pidsController   = "pids"
	memoryController = "memory"
)

// memoryFiles are the names of the file with the limit of memory, in cgroup version 1 and 2.
var memoryFiles = [...]string{"memory.limit_in_bytes", "memory.max"}

// newCgroup makes control groups for the command of a mark. It returns nil if
// the machine offers none.
func newCgroup(c *Command, mark string) *cgroup { return newCgroupIn(cgroupParents(), c, mark) }

// newCgroupIn is newCgroup in directories in which groups may be made.
func newCgroupIn(parents []cgroupParent, c *Command, mark string) *cgroup {
	wanted := []string{memoryController}
	if c.Sandbox == nil || !sandbox.LimitsProcesses() {
		wanted = append(wanted, pidsController)
	}
	g := &cgroup{}
	for _, parent := range parents {
		dir := filepath.Join(parent.dir, "pfl-forge-"+mark)
		if !parent.has(wanted) || os.Mkdir(dir, 0o755) != nil {
			continue
		}
		before := len(g.limits)
		for _, controller := range wanted {
			if slices.Contains(parent.controllers, controller) && !slices.Contains(g.limits, controller) && parent.limit(dir, controller, c) == nil {
				g.limits = append(g.limits, controller)
			}
		}
		if len(g.limits) == before {
			_ = os.Remove(dir)
			continue
		}
		g.dirs = append(g.dirs, dir)
	}
	if len(g.dirs) == 0 {
		return nil
	}
	return g
}

// cgroupParent is a directory in which a group may be made.
type cgroupParent struct {
	dir         string
	controllers []string
	// first says that it is of cgroup version 1.
	first bool
}

// has reports whether the parent offers one of the controllers.
func (p *cgroupParent) has(controllers []string) bool {
	return slices.ContainsFunc(controllers, func(c string) bool { return slices.Contains(p.controllers, c) })
}

// limit writes the limit of a controller for the group in dir.
func (p *cgroupParent) limit(dir, controller string, c *Command) error {
	if controller == pidsController {
		most := sandbox.DefaultProcesses
		if c.Sandbox != nil && c.Sandbox.Processes > 0 {
			most = c.Sandbox.Processes
		}
		return os.WriteFile(filepath.Join(dir, "pids.max"), []byte(strconv.Itoa(most)), 0)
	}
	name := memoryFiles[1]
	if p.first {
		name = memoryFiles[0]
	}
	most := c.Limits.MemoryBytes
	if most <= 0 {
		most = shareOfMemory(filepath.Join(p.dir, name))
	}
	if most <= 0 {
		return errors.New("the memory of the machine is not known")
	}
	return os.WriteFile(filepath.Join(dir, name), []byte(strconv.FormatInt(most, 10)), 0)
}

// shareOfMemory returns how much memory one command may have by default: three
// quarters of the machine's, or of what the limit in a file of the parent leaves
// of that. So one that takes all it gets is ended before others are short of it.
func shareOfMemory(parentLimit string) int64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0
	}
	all := int64(info.Totalram) * int64(info.Unit)
	text, _ := os.ReadFile(parentLimit)
	if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && n > 0 {
		all = min(all, n) // else it is "max", or larger than any machine
	}
	return all / 4 * 3
}

// cgroupParents returns the directories in which groups may be made, of cgroup version 1 or 2.
func cgroupParents() []cgroupParent {
	data, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil
	}
	var out []cgroupParent
	for line := range strings.Lines(string(data)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) != 3 {
			continue
		}
		switch {
		case fields[1] == pidsController || fields[1] == memoryController:
			out = append(out, cgroupParent{filepath.Join("/sys/fs/cgroup", fields[1], fields[2]), fields[1:2], true})
		case fields[0] == "0":
			out = append(out, unifiedParent(filepath.Join("/sys/fs/cgroup", fields[2]), fields[2]))
		}
	}
	return out
}

// add moves a process that has started nothing yet into the groups. If that fails, the
// command has no limit, as on machines without groups.
func (g *cgroup) add(pid int) error {
	var all []error
	for _, dir := range g.paths() {
		all = append(all, os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0))
	}
	return errors.Join(all...)
}

// limitsMemory reports whether the groups limit the memory of what is in them.
func (g *cgroup) limitsMemory() bool { return g != nil && slices.Contains(g.limits, memoryController) }

// ranOut reports whether the kernel has ended a process of the groups because
// they had no memory left.
func (g *cgroup) ranOut() bool {
	for _, dir := range g.paths() {
		for _, name := range [...]string{"memory.oom_control", "memory.events"} { // of cgroup version 1 and 2
			text, _ := os.ReadFile(filepath.Join(dir, name))
			for line := range strings.Lines(string(text)) {
				if n, ok := strings.CutPrefix(strings.TrimSpace(line), "oom_kill "); ok && n != "0" {
					return true
				}
			}
		}
	}
	return false
}

// errNoMemoryLimit is the error of a command whose memory the operator bounds,
// where nothing holds it to that.
var errNoMemoryLimit = fmt.Errorf("%w: %s bounds the memory of commands, and no control group that limits memory can be had here",
	ErrSandbox, demand.MemoryVariable)

// paths returns the groups' directories.
func (g *cgroup) paths() []string {
	if g == nil {
		return nil
	}
	return g.dirs
}

// leaveGroups moves this process, the last one of its groups, to where the service
// is, and removes the groups, in case that the service cannot do it any more.
func leaveGroups(dirs []string) {
	for _, dir := range dirs {
		if os.WriteFile(filepath.Join(home(dir), "cgroup.procs"), []byte("0"), 0) == nil {
			_ = os.Remove(dir)
		}
	}
}

// remove ends the processes that are left in the groups, and removes them once
// the kernel has forgotten their processes.
func (g *cgroup) remove() {
	deadline := time.Now().Add(time.Second)
	for _, dir := range g.paths() {
		killAll(dir)
		for tick := time.Tick(time.Millisecond); os.Remove(dir) != nil; <-tick {
			if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) || time.Now().After(deadline) {
				break // Sweep tries again after the next start
			}
		}
	}
}

// sweepCgroups removes the groups of commands whose marks start with prefix,
// and ends what is in them.
func sweepCgroups(prefix string) {
	for _, parent := range cgroupParents() {
		left, _ := filepath.Glob(filepath.Join(parent.dir, "pfl-forge-"+prefix+"*"))
		for _, dir := range left {
			(&cgroup{dirs: []string{dir}}).remove()
		}
	}
}

// LimitedBy describes, for pfl-forge doctor, the mechanism that limits the number of a
// command's processes; "" if there is none.
func LimitedBy() string {
	if sandbox.LimitsProcesses() {
		return "by the kernel, for each sandbox"
	}
	g := newCgroup(&Command{}, Owner{}.newMark())
	defer g.remove()
	if g != nil && slices.Contains(g.limits, pidsController) {
		return "by a control group"
	}
	return ""
}

// MemoryLimit returns, for pfl-forge doctor, how many bytes of memory a command
// may have within these bounds; 0 if nothing limits it on this machine.
func MemoryLimit(b demand.Bounds) int64 {
	g := newCgroup(&Command{Limits: Limits{MemoryBytes: b.Memory}}, Owner{}.newMark())
	defer g.remove()
	if !g.limitsMemory() {
		return 0
	}
	for _, dir := range g.dirs {
		for _, name := range memoryFiles {
			text, _ := os.ReadFile(filepath.Join(dir, name)) // one of them is there
			if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil {
				return n
			}
		}
	}
	return 0
}
