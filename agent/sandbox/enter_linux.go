package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Attributes returns the attributes, mainly namespaces, with which a process has to be
// started that will call Enter.
func (s *Spec) Attributes() *syscall.SysProcAttr {
	// The user namespace gives the privileges that the others need.
	flags := uintptr(unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC)
	if s.Network == NetworkNone {
		flags |= unix.CLONE_NEWNET
	}
	return &syscall.SysProcAttr{
		Setsid:     true,
		Cloneflags: flags,
		// Its privileges in its own namespaces, which are no privileges outside of them.
		AmbientCaps: privileges(),
	}
}

// User is the user and group of a process.
type User struct {
	UID, GID int
}

// Caller returns those of this process.
func Caller() User { return User{os.Getuid(), os.Getgid()} }

// keep makes the user the same inside as outside, so that files keep their owner. The process
// does it itself: the one that started it cannot if it may not be traced, as nothing of what
// that one starts can be until it executes another program.
func (u User) keep() error {
	for _, m := range []struct{ file, line string }{
		{"setgroups", "deny"}, // else a group could not be kept without privileges
		{"uid_map", fmt.Sprintf("%d %d 1", u.UID, u.UID)},
		{"gid_map", fmt.Sprintf("%d %d 1", u.GID, u.GID)},
	} {
		if err := os.WriteFile("/proc/self/"+m.file, []byte(m.line), 0); err != nil {
			return fmt.Errorf("keep the user: %w", err)
		}
	}
	return nil
}

// privileges returns those that a process keeps in its own namespaces when it executes the
// supervisor. Root keeps all, as it would if it were root inside from the first moment: what
// is mounted over its caches belongs to it, and may be closed to everybody.
func privileges() []uintptr {
	if os.Getuid() != 0 {
		return []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SETPCAP, unix.CAP_SYS_RESOURCE}
	}
	var all []uintptr
	for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
		all = append(all, c)
	}
	return all
}

// Enter gives the calling process, which was started with Attributes by that user, the file
// system, limits and network of the spec. Its threads keep their privileges until Restrict.
func (s *Spec) Enter(of User) error {
	for _, step := range []func() error{of.keep, s.buildRoot, s.setLimits, s.startLoopback} {
		if err := step(); err != nil {
			return err
		}
	}
	// No process inside may trace this one, which has more privileges.
	return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
}

// stagingDir is a directory that exists on every machine. The new root is built over
// it.
const stagingDir = "/proc"

// Where the machine's files and the new root are while it is built.
const (
	oldRoot = "/old"
	newRoot = "/new"
)

// buildRoot builds a new root in a temporary file system and moves into it.
func (s *Spec) buildRoot() error {
	if err := mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	// Seen from the base, the machine is in /old while the new root is built in /new.
	if err := mount("tmpfs", stagingDir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755"); err != nil {
		return err
	}
	for _, dir := range []string{oldRoot, newRoot} {
		if err := os.Mkdir(stagingDir+dir, 0o755); err != nil {
			return err
		}
	}
	if err := pivot(stagingDir, "."+oldRoot); err != nil {
		return err
	}
	if err := mount("tmpfs", newRoot, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755,size=16m"); err != nil {
		return err
	}
	// The devices first: what is to be shown may be below /dev/shm.
	for _, step := range []func() error{makeDevices, s.makeMounts, s.mountProc} {
		if err := step(); err != nil {
			return err
		}
	}
	// Only now that all mounts are made does the root become read-only.
	if err := setMountAttributes(newRoot, false, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV); err != nil {
		return err
	}
	// Mount the old root on top of the new one, then detach it.
	if err := pivot(newRoot, "."); err != nil {
		return err
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("leave the machine's files: %w", err)
	}
	return os.Chdir("/")
}

// pivot makes the directory to the root, and puts the old root on the directory old in
// it.
func pivot(to, old string) error {
	if err := os.Chdir(to); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", old); err != nil {
		return fmt.Errorf("change the root to %s: %w", to, err)
	}
	return nil
}

// makeMounts makes the mounts of the plan below the new root. Hidden ones become
// read-only last, because others may have to be made within them.
func (s *Spec) makeMounts() error {
	var hidden []string
	for _, m := range s.mountPlan() {
		if !filepath.IsAbs(m.Path) || filepath.Clean(m.Path) != m.Path || m.Path == "/" {
			return fmt.Errorf("%q cannot be mounted", m.Path)
		}
		at := newRoot + m.Path
		var err error
		switch m.Kind {
		case Link:
			err = makeLink(m.To, at)
		case ReadOnly:
			err = bindMount(mountSource(m), at, true)
		case Writable:
			err = bindMount(mountSource(m), at, false)
		case Layered:
			err = layerMount(m, at)
		case Hidden:
			if err = hide(at); errors.Is(err, os.ErrNotExist) {
				err = nil // the path does not exist inside
			} else if err == nil {
				hidden = append(hidden, at)
			}
		}
		if err != nil {
			return fmt.Errorf("show %s: %w", m.Path, err)
		}
	}
	for _, at := range hidden {
		if err := setMountAttributes(at, false, unix.MOUNT_ATTR_RDONLY); err != nil {
			return fmt.Errorf("hide %s: %w", at, err)
		}
	}
	return nil
}

// mountSource returns the path outside that a mount shows.
func mountSource(m Mount) string {
	if m.To != "" {
		return oldRoot + m.To
	}
	return oldRoot + m.Path
}

// makeLink makes a symbolic link, unless a mount around it has it already.
func makeLink(to, at string) error {
	if _, err := os.Lstat(at); err == nil {
		return nil // visible by the mount around it
	}
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return err
	}
	return os.Symlink(to, at)
}

// bindMount shows from, with the mounts below it, at another path.
func bindMount(from, at string, readOnly bool) error {
	if err := makeMountPoint(from, at); err != nil {
		return err
	}
	if err := mount(from, at, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return err
	}
	attr := uint64(unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV)
	if readOnly {
		attr |= unix.MOUNT_ATTR_RDONLY
	}
	return setMountAttributes(at, true, attr)
}

// layerMount shows the directories below a layer, and the layer. Not every file system can
// be that of an overlay: elsewhere the layer alone is shown, which is as safe, and slower.
func layerMount(m Mount, at string) error {
	escape := strings.NewReplacer(`\`, `\\`, `:`, `\:`, `,`, `\,`)
	var below []string
	for _, dir := range m.Below {
		below = append(below, escape.Replace(oldRoot+dir))
	}
	if err := makeMountPoint(oldRoot+m.To, at); err != nil {
		return err
	}
	if len(below) > 0 {
		options := "lowerdir=" + strings.Join(below, ":") + ",upperdir=" + escape.Replace(oldRoot+m.To) +
			",workdir=" + escape.Replace(oldRoot+m.Work()) + ",userxattr"
		if mount("overlay", at, "overlay", unix.MS_NOSUID|unix.MS_NODEV, options) == nil {
			return nil
		}
	}
	return bindMount(oldRoot+m.To, at, false)
}

// makeMountPoint makes a directory or file at the path, like from, to mount on.
func makeMountPoint(from, at string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(at); err == nil {
		return nil
	}
	if info.IsDir() {
		return os.MkdirAll(at, 0o755)
	}
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(at, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	return f.Close()
}

// hide covers a directory with an empty file system, and a file with /dev/null.
func hide(at string) error {
	info, err := os.Lstat(at)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return mount("tmpfs", at, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755,size=1m")
	}
	return mount(oldRoot+"/dev/null", at, "", unix.MS_BIND, "")
}

// makeDevices makes a /dev with the devices that hold no data of the machine.
func makeDevices() error {
	dev := newRoot + "/dev"
	if err := os.MkdirAll(dev, 0o755); err != nil {
		return err
	}
	for _, name := range []string{"null", "zero", "full", "random", "urandom", "tty"} {
		if err := makeMountPoint(oldRoot+"/dev/"+name, dev+"/"+name); err != nil {
			return err
		}
		if err := mount(oldRoot+"/dev/"+name, dev+"/"+name, "", unix.MS_BIND, ""); err != nil {
			return err
		}
	}
	for name, to := range map[string]string{
		"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2", "ptmx": "pts/ptmx",
	} {
		if err := os.Symlink(to, dev+"/"+name); err != nil {
			return err
		}
	}
	for _, m := range []struct{ dir, fs, data string }{
		{dev + "/shm", "tmpfs", "mode=1777,size=1g"}, // it is memory of the machine
		{dev + "/pts", "devpts", "newinstance,ptmxmode=0666,mode=620"},
	} {
		if err := os.Mkdir(m.dir, 0o755); err != nil {
			return err
		}
		if err := mount(m.fs, m.dir, m.fs, unix.MS_NOSUID|unix.MS_NOEXEC, m.data); err != nil {
			return err
		}
	}
	return nil
}

// mountProc mounts a /proc with the processes of the sandbox. It is read-only: a user
// who is root outside owns the machine's settings in it, whatever privileges are
// dropped.
func (s *Spec) mountProc() error {
	at := newRoot + "/proc"
	if err := os.MkdirAll(at, 0o755); err != nil {
		return err
	}
	if err := mount("proc", at, "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return err
	}
	// No user namespaces below this one: inside one, any process could mount.
	err := os.WriteFile(at+"/sys/user/max_user_namespaces", []byte("0"), 0o644)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("forbid further namespaces: %w", err)
	}
	s.limitProcesses(at)
	if err := hide(at + "/keys"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return setMountAttributes(at, false, unix.MOUNT_ATTR_RDONLY)
}

// mount calls mount(2); its error names the path as seen inside.
func mount(from, at, fs string, flags uintptr, data string) error {
	if err := unix.Mount(from, at, fs, flags, data); err != nil {
		return fmt.Errorf("mount %s: %w", strings.TrimPrefix(strings.TrimPrefix(at, newRoot), oldRoot), err)
	}
	return nil
}

// setMountAttributes adds attributes to a mount; deep includes the mounts below it.
func setMountAttributes(at string, deep bool, set uint64) error {
	flags := uint(unix.AT_SYMLINK_NOFOLLOW)
	if deep {
		flags |= unix.AT_RECURSIVE
	}
	err := unix.MountSetattr(unix.AT_FDCWD, at, flags, &unix.MountAttr{Attr_set: set})
	if errors.Is(err, unix.ENOSYS) {
		return errors.New("the kernel is older than 5.12")
	}
	if err != nil {
		return fmt.Errorf("restrict %s: %w", strings.TrimPrefix(at, newRoot), err)
	}
	return nil
}
