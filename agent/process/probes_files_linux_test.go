package process

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// root are the capabilities that changing files, mounts and devices of others takes.
var root = []int{unix.CAP_SYS_ADMIN, unix.CAP_DAC_OVERRIDE, unix.CAP_MKNOD, unix.CAP_SYS_CHROOT}

// fileProbes reach for files of the machine.
func fileProbes() []probe {
	p := []probe{
		{name: "read by path", try: func(o *outside) error { return o.holds(o.file()) }},
		{name: "read by many ..", try: func(o *outside) error { return o.holds(strings.Repeat("../", 40) + o.file()[1:]) }},
		{name: "read through a link", try: func(o *outside) error {
			_ = os.Symlink(o.file(), "link")
			return o.holds("link")
		}},
		{name: "read through a link to a directory", try: func(o *outside) error {
			_ = os.Symlink(o.Dir, "dir")
			return o.holds("dir/secret")
		}},
		{name: "read through a link that is exchanged", try: exchangedLink},
		{name: "list", try: func(o *outside) error { _, err := os.ReadDir(o.Dir); return err }},
		{name: "size and owner", try: func(o *outside) error { _, err := os.Lstat(o.file()); return err }},
		{name: "write", try: func(o *outside) error { return opened(o.file(), unix.O_WRONLY)(o) }},
		{name: "make a file", try: func(o *outside) error {
			return made(filepath.Join(o.Dir, "made"), func(p string) error { return os.WriteFile(p, nil, 0o600) })
		}},
		{name: "make a directory", try: func(o *outside) error {
			return made(filepath.Join(o.Dir, "made"), func(p string) error { return os.Mkdir(p, 0o700) })
		}},
		{name: "make a link", try: func(o *outside) error {
			return made(filepath.Join(o.Dir, "made"), func(p string) error { return os.Symlink("x", p) })
		}},
		{name: "rename into", try: func(o *outside) error {
			_ = os.WriteFile("moved", nil, 0o600)
			return made(filepath.Join(o.Dir, "made"), func(p string) error { return os.Rename("moved", p) })
		}},
		{name: "rename out of", try: func(o *outside) error {
			if err := os.Rename(o.file(), "taken"); err != nil {
				return err
			}
			return os.Rename("taken", o.file())
		}},
		{name: "hard link to", try: func(o *outside) error { return made("hard", func(p string) error { return os.Link(o.file(), p) }) }},
		{name: "hard link into", try: func(o *outside) error {
			_ = os.WriteFile("mine", nil, 0o600)
			return made(filepath.Join(o.Dir, "made"), func(p string) error { return os.Link("mine", p) })
		}},
		{name: "permissions", try: func(o *outside) error { return os.Chmod(o.file(), 0o600) }},
		{name: "owner", try: func(o *outside) error { return os.Chown(o.file(), os.Getuid(), os.Getgid()) }},
		{name: "times", try: func(o *outside) error { return unix.Utimes(o.file(), make([]unix.Timeval, 2)) }},
		{name: "length", try: func(o *outside) error { return os.Truncate(o.file(), int64(len(o.Secret))) }},
		{name: "lock", try: func(o *outside) error {
			f, err := os.Open(o.file())
			if err != nil {
				return err
			}
			defer f.Close()
			return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		}},
		{name: "watch", try: func(o *outside) error {
			fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
			if err != nil {
				return err
			}
			defer func() { _ = unix.Close(fd) }()
			_, err = unix.InotifyAddWatch(fd, o.Dir, unix.IN_ALL_EVENTS)
			return err
		}},
		{name: "watch a whole file system", needs: root, blind: "a kernel may lack it", try: func(*outside) error {
			fd, err := unix.FanotifyInit(unix.FAN_CLASS_CONTENT, unix.O_RDONLY)
			if err != nil {
				return err
			}
			defer func() { _ = unix.Close(fd) }()
			return unix.FanotifyMark(fd, unix.FAN_MARK_ADD|unix.FAN_MARK_FILESYSTEM, unix.FAN_OPEN, unix.AT_FDCWD, "/")
		}},
		{name: "handle", try: func(o *outside) error { _, _, err := unix.NameToHandleAt(unix.AT_FDCWD, o.file(), 0); return err }},
		{name: "start a program there", try: func(o *outside) error { return os.Chdir(o.Dir) }},
		{name: "root of process 1", blind: "it may have more privileges", try: func(o *outside) error { return o.holds("/proc/1/root" + o.file()) }},
		{name: "roots of processes", try: func(o *outside) error {
			return anyProcess(func(d string) error { return o.holds(d + "/root" + o.file()) })
		}},
		{name: "directories of processes", try: func(o *outside) error { return anyProcess(func(d string) error { return o.holds(d + "/cwd/secret") }) }},
		// Of one process alone: to read a pipe of another one would wait, and
		// take what is meant for that.
		{name: "descriptors of a process", try: func(o *outside) error { return o.holds(fmt.Sprintf("/proc/%d/fd/3", o.Pid)) }},
		{name: "change the root", needs: root, try: func(*outside) error { return raw(unix.SYS_CHROOT, cstring("/"))() }},
		{name: "write to the root", needs: root, try: func(*outside) error {
			return made("/pfl-forge-probe", func(p string) error { return os.Mkdir(p, 0o700) })
		}},
		{name: "write to programs", needs: root, try: func(*outside) error {
			return made("/usr/pfl-forge-probe", func(p string) error { return os.Mkdir(p, 0o700) })
		}},
		{name: "write to /etc/passwd", needs: root, try: opened("/etc/passwd", unix.O_WRONLY)},
		{name: "read /etc/shadow", needs: root, try: opened("/etc/shadow", unix.O_RDONLY)},
		{name: "a device of memory", needs: root, try: device(unix.S_IFCHR, 1, 1)},
		{name: "a device of ports", needs: root, try: device(unix.S_IFCHR, 1, 4)},
		{name: "a device of the kernel's messages", needs: root, try: device(unix.S_IFCHR, 1, 11)},
		{name: "a device of a disk", needs: root, try: device(unix.S_IFBLK, 7, 0)},
		{name: "a device of fuse", needs: root, try: device(unix.S_IFCHR, 10, 229)},
	}
	for _, m := range []struct{ from, fs string }{
		{"tmpfs", "tmpfs"}, {"proc", "proc"}, {"sysfs", "sysfs"}, {"devpts", "devpts"}, {"devtmpfs", "devtmpfs"}, {"mqueue", "mqueue"}, {"cgroup2", "cgroup2"},
	} {
		p = append(p, probe{name: "mount " + m.fs, needs: root, blind: lacking(m.fs), try: mounted(m.from, m.fs, 0, "")})
	}
	p = append(p,
		probe{name: "mount a part of the machine", needs: root, try: func(o *outside) error { return mounted(o.Dir, "", unix.MS_BIND, "")(o) }},
		probe{name: "mount over what there is", needs: root, try: func(o *outside) error { return mounted(".", "overlay", 0, "lowerdir=/usr:/etc")(o) }},
		probe{name: "mount what can be written", needs: root, try: func(*outside) error {
			return reached(unix.Mount("", "/nowhere", "", unix.MS_REMOUNT|unix.MS_BIND, "") == unix.ENOENT)
		}},
		probe{name: "unmount", needs: root, try: func(*outside) error { return reached(unix.Unmount("/nowhere", 0) == unix.ENOENT) }},
	)
	for _, path := range []string{
		"kernel/core_pattern", "kernel/modprobe", "kernel/hostname", "kernel/sysrq", "kernel/randomize_va_space", "kernel/pid_max", "kernel/panic", "kernel/printk",
		"vm/overcommit_memory", "vm/drop_caches", "vm/panic_on_oom", "vm/swappiness", "fs/file-max", "fs/suid_dumpable", "user/max_user_namespaces",
	} {
		p = append(p, probe{
			name: "set " + path, needs: append(root, unix.CAP_SYS_RESOURCE), blind: missing("/proc/sys/" + path),
			try: opened("/proc/sys/"+path, unix.O_WRONLY),
		})
	}
	for _, path := range []string{
		"/proc/sysrq-trigger", "/proc/irq/default_smp_affinity", "/sys/power/state",
		"/sys/kernel/mm/transparent_hugepage/enabled", "/sys/kernel/uevent_helper",
	} {
		p = append(p, probe{name: "write " + path, needs: root, blind: absent(path), try: opened(path, unix.O_WRONLY)})
	}
	for _, path := range []string{
		"/proc/kcore", "/proc/kmsg", "/dev/mem", "/dev/port", "/dev/kmsg", "/dev/kvm", "/dev/fuse", "/dev/net/tun", "/dev/loop-control", "/dev/loop0",
		"/dev/cpu_dma_latency", "/dev/hwrng", "/dev/tty1", "/dev/vda", "/dev/vsock", "/dev/rtc0", "/dev/vhost-net", "/dev/userfaultfd",
	} {
		p = append(p, probe{name: "open " + path, needs: root, blind: absent(path), try: opened(path, unix.O_RDONLY)})
	}
	p = append(p, probe{name: "addresses of the kernel", blind: "a kernel may hide them from everyone", try: func(*outside) error {
		return reached(strings.Contains(text("/proc/kallsyms"), " T commit_creds") && !strings.Contains(text("/proc/kallsyms"), "0000000000000000 T commit_creds"))
	}}, probe{name: "a group of processes", needs: root, blind: absent("/sys/fs/cgroup/memory"), try: func(*outside) error {
		return made("/sys/fs/cgroup/memory/pfl-forge-probe", func(p string) error { return os.Mkdir(p, 0o700) })
	}})
	return family("files", p)
}

// family names the family of probes.
func family(name string, list []probe) []probe {
	for i := range list {
		list[i].family = name
	}
	return list
}

// absent says why a path may not be reached outside either.
func absent(path string) string {
	if fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0); err == nil {
		_ = unix.Close(fd)
		return "a machine may not let root do it"
	}
	return "the machine has none"
}

// missing says why a path that root may write to is not reached outside either; "" if it is there.
func missing(path string) string {
	if _, err := os.Stat(path); err != nil {
		return "the machine has none"
	}
	return ""
}

// lacking says why a file system may not be mounted outside either.
func lacking(fs string) string {
	if !strings.Contains(text("/proc/filesystems"), "\t"+fs+"\n") {
		return "the kernel has none"
	}
	return ""
}

// text returns a file; "" if it cannot be read.
func text(path string) string {
	data, _ := os.ReadFile(path)
	return string(data)
}

// cstring returns the address of a text for a system call.
func cstring(s string) uintptr {
	p, _ := unix.BytePtrFromString(s)
	return address(p)
}

// kept are values whose addresses system calls have.
var kept []any

// address returns the address of a value for a system call that is made later. The value is
// kept: on a stack it would move, or make room for something else that the call then overwrites.
func address[T any](p *T) uintptr {
	kept = append(kept, p)
	return uintptr(unsafe.Pointer(p))
}

// made makes something and removes it.
func made(path string, makeIt func(string) error) error {
	if err := makeIt(path); err != nil {
		return err
	}
	return os.Remove(path)
}

// mounted returns a probe that mounts something on a directory of its own, and unmounts it.
func mounted(from, fs string, flags uintptr, data string) func(*outside) error {
	return func(*outside) error {
		_ = os.Mkdir("mount", 0o700)
		if err := unix.Mount(from, "mount", fs, flags, data); err != nil {
			return err
		}
		return unix.Unmount("mount", unix.MNT_DETACH)
	}
}

// device returns a probe that makes a device in the checkout.
func device(mode, major, minor uint32) func(*outside) error {
	return func(*outside) error {
		return made(fmt.Sprintf("device-%d-%d", major, minor), func(p string) error { return unix.Mknod(p, mode|0o600, int(unix.Mkdev(major, minor))) })
	}
}

// exchangedLink reads a name that is in turn a file of its own and a link out of the checkout.
func exchangedLink(o *outside) error {
	_ = os.WriteFile("own", nil, 0o600)
	_ = os.Symlink("own", "turn")
	stop := make(chan struct{})
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				_ = os.Symlink([]string{"own", o.file()}[i%2], "next")
				_ = os.Rename("next", "turn")
			}
		}
	}()
	defer func() { close(stop); <-stopped }()
	err := errNotReached
	for range 5000 {
		if err = o.holds("turn"); err == nil {
			return nil
		}
	}
	return err
}
