package process

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// A group of cgroup version 2 that has processes passes no controllers on to groups below
// it: only leaves have processes. So this process, with all that it has started, moves from
// a group that is delegated to it to a leaf below that. Commands get groups beside the leaf.

// leafName is the name of the leaf in which this process lives.
const leafName = "pfl-forge-service"

// makeRoom is asked once in a process, before its first command: what stands in
// the way stays there.
var makeRoom sync.Once

// unifiedParent returns the directory in which groups of version 2 may be made,
// where own is that of our group, and the controllers that limit them.
func unifiedParent(own, path string) cgroupParent {
	p := cgroupParent{dir: own}
	if filepath.Base(own) == leafName {
		p.dir = filepath.Dir(own)
	} else if !slices.Contains(words(own, "cgroup.subtree_control"), memoryController) {
		makeRoom.Do(func() {
			if delegated(own, path) {
				_ = passOn(own, pidsController, memoryController)
			}
		})
	}
	p.controllers = words(p.dir, "cgroup.subtree_control")
	return p
}

// words returns the words in a file of a group; none if it cannot be read.
func words(dir, file string) []string {
	text, _ := os.ReadFile(filepath.Join(dir, file))
	return strings.Fields(string(text))
}

// delegated reports whether a group was given to us to make groups below it. A
// user other than root can make some nowhere else. Root can everywhere, and
// goes by the mark that systemd leaves where a unit has Delegate=, or by being
// in a namespace of groups that begins with this one, as in a container.
func delegated(dir, path string) bool {
	if os.Geteuid() != 0 || path == "/" {
		return true
	}
	for _, name := range []string{"trusted.delegate", "user.delegate"} {
		var value [8]byte
		if n, err := unix.Getxattr(dir, name, value[:]); err == nil && string(value[:n]) == "1" {
			return true
		}
	}
	return false
}

// errShared says that a group has processes that are not ours to move.
var errShared = errors.New("other processes are in the group")

// passOn has a group pass on those of the controllers that it has to groups below
// it. If it has processes, they move to a leaf first, all of them: they have to
// be this process and those that it has started. If that fails, all is as it was.
func passOn(dir string, controllers ...string) error {
	offered := words(dir, "cgroup.controllers")
	controllers = slices.DeleteFunc(slices.Clone(controllers), func(c string) bool { return !slices.Contains(offered, c) })
	if len(controllers) == 0 {
		return errors.New("no controller is offered")
	}
	if !inhabited(dir) {
		return enable(dir, controllers)
	}
	leaf := filepath.Join(dir, leafName)
	err := os.Mkdir(leaf, 0o755)
	if err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	for range 100 { // what was started meanwhile is moved as well; there are few of these
		if err = moveOurs(dir, leaf); err != nil {
			break
		}
		if err = unix.EBUSY; inhabited(dir) {
			continue
		}
		if err = enable(dir, controllers); !errors.Is(err, unix.EBUSY) {
			break
		}
	}
	if err != nil {
		_ = moveOurs(leaf, dir)
		_ = os.Remove(leaf)
	}
	return err
}

// inhabited reports whether a group has processes that are in the way of passing controllers
// on. The root of all groups, which alone has no type, passes on whatever is in it.
func inhabited(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "cgroup.type"))
	return err == nil && len(words(dir, "cgroup.procs")) > 0
}

// enable has a group pass all of the controllers on, or none. Each by itself
// would not do: the kernel lets pids be passed on by a group that has processes,
// which can then pass memory on no more, and the groups below it take no process.
func enable(dir string, controllers []string) error {
	return os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+strings.Join(controllers, " +")), 0)
}

// moveOurs moves all processes of a group to another one: this process first, so that what it
// starts from then on is there. If one is neither this process nor of its making, none is moved.
func moveOurs(from, to string) error {
	ours := append([]int{os.Getpid()}, descendants(os.Getpid())...)
	var pids []int
	for _, word := range words(from, "cgroup.procs") {
		pid, err := strconv.Atoi(word)
		if err != nil || !slices.Contains(ours, pid) && alive(pid) {
			return errShared // 0 is a process of another namespace
		}
		if pid == os.Getpid() {
			pids = append([]int{pid}, pids...)
		} else {
			pids = append(pids, pid)
		}
	}
	for _, pid := range pids {
		if err := os.WriteFile(filepath.Join(to, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0); err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
	}
	return nil
}

// alive reports whether there is a process of an id. One that has ended
// meanwhile does not stand in the way.
func alive(pid int) bool { return pid == 0 || !errors.Is(syscall.Kill(pid, 0), unix.ESRCH) }

// home returns the directory to which a process leaves a group: the leaf beside it,
// since the group above may have no processes, or, in version 1, the group above.
func home(dir string) string {
	leaf := filepath.Join(filepath.Dir(dir), leafName)
	if _, err := os.Stat(leaf); err == nil {
		return leaf
	}
	return filepath.Dir(dir)
}

// killAll has the kernel end all processes of a group at once, where it can: from version 2 on.
func killAll(dir string) {
	_ = os.WriteFile(filepath.Join(dir, "cgroup.kill"), []byte("1"), 0)
}
