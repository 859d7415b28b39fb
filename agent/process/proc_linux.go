package process

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Sweep kills every process that an earlier process of this service left running, and
// returns how many it killed. Call it before the first command.
func (o Owner) Sweep(ctx context.Context) (int, error) {
	if o.mark == "" {
		return 0, nil
	}
	defer sweepCgroups(o.mark + "-")
	return sweep(ctx, o.mark+"-")
}

// sweep kills all processes whose mark starts with prefix, until none is left. They are
// stopped first, so that a process that forks faster than it is found cannot escape.
func sweep(ctx context.Context, prefix string) (int, error) {
	killed := map[int]bool{}
	deadline := time.Now().Add(killDelay)
	for tick := time.Tick(time.Millisecond); ; <-tick {
		pids := stopAll(func() []int { return marked(prefix) })
		if len(pids) == 0 {
			return len(killed), nil
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			return len(killed), fmt.Errorf("%w (%d)", ErrSurvivors, len(pids))
		}
		for _, pid := range pids {
			killed[pid] = true
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// killTree kills all current descendants of a process.
func killTree(root int) {
	for _, pid := range stopAll(func() []int { return descendants(root) }) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// stopAll stops the processes that find returns, repeatedly until there are no new
// ones, and returns them all.
func stopAll(find func() []int) []int {
	stopped := map[int]bool{}
	for range 100 { // a stopped process forks no more, so this ends long before
		fresh := false
		for _, pid := range find() {
			if !stopped[pid] {
				stopped[pid], fresh = true, true
				_ = syscall.Kill(pid, syscall.SIGSTOP)
			}
		}
		if !fresh {
			break
		}
	}
	return find()
}

// marked returns the processes whose mark starts with prefix, except this one.
func marked(prefix string) []int {
	var out []int
	want := []byte(MarkerVariable + "=" + prefix)
	for _, pid := range processes() {
		if pid == os.Getpid() || zombie(pid) {
			continue
		}
		env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
		if err != nil {
			continue // gone, or another user's
		}
		for entry := range bytes.SplitSeq(env, []byte{0}) {
			if bytes.HasPrefix(entry, want) {
				out = append(out, pid)
				break
			}
		}
	}
	return out
}

// descendants returns the living processes below root.
func descendants(root int) []int {
	children := map[int][]int{}
	for _, pid := range processes() {
		if state, parent, ok := stat(pid); ok && state != 'Z' && state != 'X' {
			children[parent] = append(children[parent], pid)
		} else if ok {
			children[parent] = append(children[parent], -pid) // dead, but perhaps a thread group with children
		}
	}
	var out []int
	for queue := []int{root}; len(queue) > 0; queue = queue[1:] {
		for _, pid := range children[queue[0]] {
			if pid < 0 {
				queue = append(queue, -pid)
				continue
			}
			out = append(out, pid)
			queue = append(queue, pid)
		}
	}
	return out
}

// processes returns the ids of all processes.
func processes() []int {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	var out []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			out = append(out, pid)
		}
	}
	return out
}

// zombie reports whether a process is dead, and only not reaped yet.
func zombie(pid int) bool {
	state, _, ok := stat(pid)
	return ok && (state == 'Z' || state == 'X')
}

// stat returns a process's state and parent. The command's name in the file can contain
// anything, so the fields are counted from the last parenthesis.
func stat(pid int) (state byte, parent int, ok bool) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, 0, false
	}
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	if len(fields) < 2 {
		return 0, 0, false
	}
	parent, err = strconv.Atoi(fields[1])
	return fields[0][0], parent, err == nil
}
