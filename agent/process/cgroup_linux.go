package process

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge/agent/sandbox"
)

// cgroup limits how many processes a command may have at once, where nothing else does.
// A nil one does nothing.
type cgroup struct {
	dir string
}

// newCgroup makes a control group for the command of a mark. It returns nil if the
// machine offers none, or the sandbox limits the processes itself.
func newCgroup(c *Command, mark string) *cgroup {
	if c.Sandbox != nil && sandbox.LimitsProcesses() {
		return nil
	}
	for _, parent := range cgroupParents() {
		dir := filepath.Join(parent, "pfl-forge-"+mark)
		if os.Mkdir(dir, 0o755) != nil {
			continue
		}
		most := sandbox.DefaultProcesses
		if c.Sandbox != nil && c.Sandbox.Processes > 0 {
			most = c.Sandbox.Processes
		}
		if os.WriteFile(filepath.Join(dir, "pids.max"), []byte(strconv.Itoa(most)), 0) == nil {
			return &cgroup{dir}
		}
		_ = os.Remove(dir)
	}
	return nil
}

// cgroupParents returns the directories in which a group may be made, of cgroup version
// 1 or 2.
func cgroupParents() []string {
	data, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil
	}
	var out []string
	for line := range strings.Lines(string(data)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) != 3 {
			continue
		}
		switch {
		case fields[1] == "pids":
			out = append(out, filepath.Join("/sys/fs/cgroup/pids", fields[2]))
		case fields[0] == "0":
			dir := filepath.Join("/sys/fs/cgroup", fields[2])
			if on, _ := os.ReadFile(filepath.Join(dir, "cgroup.subtree_control")); strings.Contains(" "+string(on), "pids") {
				out = append(out, dir)
			}
		}
	}
	return out
}

// add moves a process that has started nothing yet into the group. If that fails, the
// command has no limit, as on machines without groups.
func (g *cgroup) add(pid int) {
	if g != nil {
		_ = os.WriteFile(filepath.Join(g.dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0)
	}
}

// path returns the group's directory; empty without a group.
func (g *cgroup) path() string {
	if g == nil {
		return ""
	}
	return g.dir
}

// leaveGroup moves this process, the group's last one, to the parent, and removes the
// group, in case that the service cannot do it any more.
func leaveGroup(dir string) {
	if dir != "" && os.WriteFile(filepath.Join(filepath.Dir(dir), "cgroup.procs"), []byte("0"), 0) == nil {
		_ = os.Remove(dir)
	}
}

// remove removes the group once the kernel has forgotten its processes.
func (g *cgroup) remove() {
	if g == nil {
		return
	}
	deadline := time.Now().Add(time.Second)
	for tick := time.Tick(time.Millisecond); os.Remove(g.dir) != nil; <-tick {
		if _, err := os.Stat(g.dir); errors.Is(err, os.ErrNotExist) || time.Now().After(deadline) {
			return // Sweep tries again after the next start
		}
	}
}

// sweepCgroups removes the groups of commands whose marks start with prefix.
func sweepCgroups(prefix string) {
	for _, parent := range cgroupParents() {
		left, _ := filepath.Glob(filepath.Join(parent, "pfl-forge-"+prefix+"*"))
		for _, dir := range left {
			_ = os.Remove(dir)
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
	if g != nil {
		return "by a control group"
	}
	return ""
}
