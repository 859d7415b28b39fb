package process

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// processProbes reach for processes of the machine.
func processProbes() []probe {
	ofAny := func(path string) func(*outside) error {
		return func(o *outside) error { return anyProcess(func(d string) error { return o.holds(d + "/" + path) }) }
	}
	on := func(try func(pid int) error) func(*outside) error {
		return func(o *outside) error { return try(o.Pid) }
	}
	call := func(nr uintptr, before []uintptr, after ...uintptr) func(*outside) error {
		return func(o *outside) error {
			return raw(nr, append(append(slices.Clip(before), uintptr(o.Pid)), after...)...)()
		}
	}
	pid := []uintptr{}
	var limit unix.Rlimit
	var mask unix.CPUSet
	return family("processes", []probe{
		{name: "environments", try: ofAny("environ")},
		{name: "arguments", try: ofAny("cmdline")},
		{name: "maps", try: func(o *outside) error {
			return anyProcess(func(d string) error { return reached(strings.Contains(text(d+"/maps"), o.file())) })
		}},
		{name: "stacks", needs: root, blind: "a kernel may keep none", try: func(o *outside) error { return o.holds(fmt.Sprintf("/proc/%d/stack", o.Pid)) }},
		{name: "number in /proc", try: on(func(pid int) error { _, err := os.Stat("/proc/" + strconv.Itoa(pid)); return err })},
		{name: "memory by /proc", needs: []int{unix.CAP_SYS_PTRACE}, try: func(o *outside) error {
			f, err := os.Open(fmt.Sprintf("/proc/%d/mem", o.Test))
			if err != nil {
				return err
			}
			defer f.Close()
			b := make([]byte, len(o.Secret))
			_, err = f.ReadAt(b, int64(o.At))
			return firstError(err, reached(string(b) == o.Secret))
		}},
		{name: "memory by process_vm_readv", needs: []int{unix.CAP_SYS_PTRACE}, try: func(o *outside) error {
			b := make([]byte, len(o.Secret))
			local := []unix.Iovec{{Base: &b[0], Len: uint64(len(b))}}
			_, err := unix.ProcessVMReadv(o.Test, local, []unix.RemoteIovec{{Base: o.At, Len: len(b)}}, 0)
			return firstError(err, reached(string(b) == o.Secret))
		}},
		{name: "tracing", needs: []int{unix.CAP_SYS_PTRACE}, try: on(func(pid int) error {
			runtime.LockOSThread() // only the thread that traces may go on
			defer runtime.UnlockOSThread()
			if err := raw(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(pid))(); err != nil {
				return err
			}
			if err := unix.PtraceInterrupt(pid); err != nil {
				return err
			}
			_, _ = unix.Wait4(pid, nil, unix.WALL, nil)
			return unix.PtraceDetach(pid)
		})},
		{name: "signal", try: call(unix.SYS_KILL, pid, 0)},
		{name: "signal to the service", try: func(o *outside) error { return raw(unix.SYS_KILL, uintptr(o.Test), 0)() }},
		{name: "signal to a thread", try: func(o *outside) error { return raw(unix.SYS_TGKILL, uintptr(o.Pid), uintptr(o.Pid), 0)() }},
		{name: "signal with a value", try: call(unix.SYS_TKILL, pid, 0)},
		{name: "descriptor of a process", try: call(unix.SYS_PIDFD_OPEN, pid, 0)},
		{name: "limits", try: call(unix.SYS_PRLIMIT64, pid, unix.RLIMIT_CORE, 0, address(&limit))},
		{name: "priority", try: call(unix.SYS_GETPRIORITY, []uintptr{unix.PRIO_PROCESS})},
		{name: "priority set", try: call(unix.SYS_SETPRIORITY, []uintptr{unix.PRIO_PROCESS}, 0)},
		{name: "processors", try: call(unix.SYS_SCHED_GETAFFINITY, pid, unsafe.Sizeof(mask), address(&mask))},
		{name: "scheduling", try: call(unix.SYS_SCHED_GETSCHEDULER, pid)},
		{name: "scheduling of its disks", try: call(unix.SYS_IOPRIO_GET, []uintptr{1})},
		{name: "its group", try: call(unix.SYS_GETPGID, pid)},
		{name: "its session", try: call(unix.SYS_GETSID, pid)},
		{name: "capabilities", try: on(func(pid int) error {
			h := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3, Pid: int32(pid)}
			return unix.Capget(&h, &[]unix.CapUserData{{}, {}}[0])
		})},
		{name: "its likelihood to be ended", try: on(func(pid int) error {
			return os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid), []byte("1000"), 0)
		})},
		{name: "its clock", try: on(func(pid int) error {
			var ts unix.Timespec
			return unix.ClockGettime(int32(^pid<<3|2), &ts)
		})},
	})
}

// firstError returns the first that is not nil.
func firstError(list ...error) error {
	for _, err := range list {
		if err != nil {
			return err
		}
	}
	return nil
}

// privilegeProbes reach for privileges and namespaces.
func privilegeProbes() []probe {
	admin := []int{unix.CAP_SYS_ADMIN, unix.CAP_SETUID, unix.CAP_SETGID, unix.CAP_SETPCAP, unix.CAP_SYS_NICE, unix.CAP_SYS_TIME, unix.CAP_IPC_LOCK}
	p := []probe{
		{name: "another user", needs: admin, try: mustBe(unix.SYS_SETRESUID, 12345, 12345, 12345)},
		{name: "another group", needs: admin, try: mustBe(unix.SYS_SETRESGID, 12345, 12345, 12345)},
		{name: "further groups", needs: admin, try: mustBe(unix.SYS_SETGROUPS, 0, 0)},
		{name: "files as another user", needs: admin, try: func(*outside) error {
			_ = raw(unix.SYS_SETFSUID, 12345)()
			id, _, _ := unix.RawSyscall(unix.SYS_SETFSUID, ^uintptr(0), 0, 0)
			return reached(id == 12345)
		}},
		{name: "a capability", needs: admin, try: func(*outside) error { return reached(privileged([]int{unix.CAP_SYS_ADMIN})) }},
		{name: "any capability", needs: admin, try: func(*outside) error {
			return reached(!strings.Contains(text("/proc/self/status"), "CapPrm:\t0000000000000000"))
		}},
		{name: "capabilities of programs", needs: admin, try: func(*outside) error {
			return reached(!strings.Contains(text("/proc/self/status"), "CapBnd:\t0000000000000000"))
		}},
		{name: "privileges by setuid programs", try: func(*outside) error { return reached(strings.Contains(text("/proc/self/status"), "NoNewPrivs:\t0")) }},
		{
			name: "calls that are not filtered", blind: "the machine may filter them too",
			try: func(*outside) error { return reached(strings.Contains(text("/proc/self/status"), "Seccomp:\t0")) },
		},
		{name: "secure bits", needs: admin, try: mustBe(unix.SYS_PRCTL, unix.PR_SET_SECUREBITS, 0)},
		{name: "name of the machine", needs: admin, try: func(*outside) error {
			name, err := os.Hostname()
			return firstError(err, unix.Sethostname([]byte(name)))
		}},
		{name: "domain of the machine", needs: admin, try: func(*outside) error {
			var u unix.Utsname
			return firstError(unix.Uname(&u), unix.Setdomainname([]byte(unix.ByteSliceToString(u.Domainname[:]))))
		}},
		{name: "the clock", needs: admin, harm: "it would move", try: func(*outside) error {
			now := unix.NsecToTimespec(time.Now().UnixNano())
			return unix.ClockSettime(unix.CLOCK_REALTIME, &now)
		}},
		{name: "a realtime schedule", needs: admin, blind: "a machine may give no time to such", try: func(*outside) error {
			priority := int32(1)
			return raw(unix.SYS_SCHED_SETSCHEDULER, 0, 1, address(&priority))()
		}},
		{name: "realtime disks", needs: admin, try: mustBe(unix.SYS_IOPRIO_SET, 1, 0, 1<<13)},
		{name: "a higher priority", needs: admin, try: mustBe(unix.SYS_SETPRIORITY, unix.PRIO_PROCESS, 0, ^uintptr(4))},
		{name: "a lower likelihood to be ended", try: func(*outside) error { return os.WriteFile("/proc/thread-self/oom_score_adj", []byte("0"), 0) }},
		{name: "ports of the machine", needs: []int{unix.CAP_SYS_RAWIO}, blind: "a kernel may lack it", try: mustBe(unix.SYS_IOPERM, 0x80, 1, 1)},
		{name: "all ports of the machine", needs: []int{unix.CAP_SYS_RAWIO}, blind: "a kernel may lack it", try: mustBe(unix.SYS_IOPL, 3)},
		{name: "restart", harm: "it would change what a key does", try: mustBe(unix.SYS_REBOOT, unix.LINUX_REBOOT_MAGIC1,
			unix.LINUX_REBOOT_MAGIC2, unix.LINUX_REBOOT_CMD_CAD_OFF)},
		{name: "swap", harm: "memory would go there", try: func(*outside) error { return raw(unix.SYS_SWAPON, cstring("/dev/null"))() }},
		{name: "a terminal's input", harm: "it would type", try: func(*outside) error {
			f, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
			if err != nil {
				return err
			}
			defer f.Close()
			b := byte(' ')
			return raw(unix.SYS_IOCTL, f.Fd(), unix.TIOCSTI, address(&b))()
		}},
	}
	for _, n := range []struct {
		name string
		flag uintptr
	}{
		{"mounts", unix.CLONE_NEWNS},
		{"processes", unix.CLONE_NEWPID},
		{"network", unix.CLONE_NEWNET},
		{"messages", unix.CLONE_NEWIPC},
		{"names", unix.CLONE_NEWUTS},
		{"groups", unix.CLONE_NEWCGROUP},
		{"users", unix.CLONE_NEWUSER},
		{"users and mounts", unix.CLONE_NEWUSER | unix.CLONE_NEWNS},
		{"clocks", unix.CLONE_NEWTIME},
	} {
		if n.flag&unix.CLONE_NEWUSER == 0 {
			p = append(p, probe{name: "unshare " + n.name, needs: admin, try: mustBe(unix.SYS_UNSHARE, n.flag)})
		}
		if n.flag != unix.CLONE_NEWTIME {
			p = append(p, probe{name: "clone with new " + n.name, needs: admin, try: func(*outside) error {
				c := exec.Command("true")
				c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: n.flag}
				return c.Run()
			}})
		}
		p = append(p, probe{name: "clone3 with new " + n.name, needs: admin, try: func(*outside) error { return clone3(n.flag) }})
	}
	for _, n := range []string{"mnt", "net", "ipc", "uts", "cgroup"} {
		p = append(p, probe{name: "join another's " + n, needs: admin, try: func(*outside) error {
			fd, err := unix.Open("/proc/self/ns/"+n, unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				return err
			}
			defer func() { _ = unix.Close(fd) }()
			if n == "mnt" {
				if err := raw(unix.SYS_UNSHARE, unix.CLONE_FS)(); err != nil {
					return err
				}
			}
			return unix.Setns(fd, 0)
		}})
	}
	return family("privileges", p)
}

// clone3 starts a process in new namespaces that ends at once.
//
//go:norace
func clone3(flags uintptr) error {
	args := [11]uint64{uint64(flags), 0, 0, 0, uint64(unix.SIGCHLD)}
	pid, _, errno := unix.RawSyscall(unix.SYS_CLONE3, uintptr(unsafe.Pointer(&args)), 64, 0)
	if errno != 0 {
		return errno
	}
	if pid == 0 {
		unix.RawSyscall(unix.SYS_EXIT, 0, 0, 0) //nolint:errcheck // it ends
	}
	_, err := unix.Wait4(int(pid), nil, 0, nil)
	return err
}

// boundProbes take more memory, disk or processes than there is for a command.
func boundProbes() []probe {
	resource := []int{unix.CAP_SYS_RESOURCE}
	raise := func(which int, to uint64) func(*outside) error {
		return func(*outside) error {
			var was unix.Rlimit
			if err := unix.Prlimit(0, which, nil, &was); err != nil {
				return err
			}
			if was.Max >= to {
				return nil
			}
			return unix.Prlimit(0, which, &unix.Rlimit{Cur: to, Max: to}, nil)
		}
	}
	return family("bounds", []probe{
		{name: "shared memory of more than a gibibyte", blind: "a machine may have less", try: func(*outside) error {
			const path = "/dev/shm/pfl-forge-probe"
			fd, err := unix.Open(path, unix.O_CREAT|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
			if err != nil {
				return err
			}
			defer func() { _ = unix.Close(fd); _ = os.Remove(path) }()
			return unix.Fallocate(fd, 0, 0, 1<<30+1<<20)
		}},
		{name: "a file of more than 64 gibibytes", try: func(*outside) error {
			return made("large", func(p string) error {
				if err := os.WriteFile(p, nil, 0o600); err != nil {
					return err
				}
				return os.Truncate(p, 64<<30+1)
			})
		}},
		{name: "a core dump", try: raise(unix.RLIMIT_CORE, 1)},
		{name: "larger files", try: raise(unix.RLIMIT_FSIZE, 65<<30)},
		{name: "locked memory", needs: []int{unix.CAP_IPC_LOCK}, try: func(*outside) error {
			b, err := unix.Mmap(-1, 0, 512<<20, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
			if err != nil {
				return err
			}
			defer func() { _ = unix.Munmap(b) }()
			return raw(unix.SYS_MLOCK2, uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), unix.MLOCK_ONFAULT)()
		}},
		{name: "more open files", needs: resource, try: raise(unix.RLIMIT_NOFILE, 1<<30-1), blind: "a machine may forbid as many"},
		{name: "files in the root", needs: root, try: func(*outside) error {
			return made("/pfl-forge-probe", func(p string) error { return os.WriteFile(p, nil, 0o600) })
		}},
		{name: "files among the devices", needs: root, try: func(*outside) error {
			return made("/dev/pfl-forge-probe", func(p string) error { return os.WriteFile(p, nil, 0o600) })
		}},
	})
}

// leakProbes reach for what a process inherits, and for what belongs to a user or the machine.
func leakProbes() []probe {
	return family("leaks", []probe{
		{name: "inherited variables", try: func(o *outside) error { return reached(strings.Contains(strings.Join(os.Environ(), "\n"), o.Secret)) }},
		{name: "inherited descriptors", try: func(o *outside) error {
			list, _ := filepath.Glob("/proc/self/fd/*")
			for _, fd := range list {
				if to, _ := os.Readlink(fd); strings.HasPrefix(to, o.Dir) {
					return nil
				}
			}
			return errNotReached
		}},
		{name: "shared memory", blind: "a kernel may lack it", try: func(o *outside) error {
			data, err := unix.SysvShmAttach(o.Shm, 0, unix.SHM_RDONLY)
			if err != nil {
				return err
			}
			defer func() { _ = unix.SysvShmDetach(data) }()
			return reached(strings.HasPrefix(string(data), o.Secret))
		}},
		{
			name: "segments of shared memory", blind: "a kernel may lack it",
			try: func(*outside) error { return reached(strings.Count(text("/proc/sysvipc/shm"), "\n") > 1) },
		},
		{name: "a message queue", blind: "a kernel may lack it", try: func(o *outside) error {
			fd, err := openQueue(o.Queue, unix.O_RDWR)
			if err != nil {
				return err
			}
			return unix.Close(fd)
		}},
		{name: "a key", blind: "a kernel may lack it", try: func(o *outside) error {
			b := make([]byte, 100)
			n, err := unix.KeyctlBuffer(unix.KEYCTL_READ, o.Key, b, 0)
			return firstError(err, reached(n > 0 && n <= len(b) && string(b[:n]) == o.Secret))
		}},
		{name: "a key by its name", blind: "a kernel may lack it", try: func(o *outside) error {
			_, err := unix.KeyctlSearch(unix.KEY_SPEC_USER_KEYRING, "user", o.Secret, 0)
			return err
		}},
		{name: "keys of the user", blind: "a kernel may lack it", try: func(o *outside) error { return o.holds("/proc/keys") }},
		{name: "users of keys", blind: "a kernel may lack it", try: func(*outside) error {
			return raw(unix.SYS_KEYCTL,
				unix.KEYCTL_GET_KEYRING_ID, ^uintptr(3), 1)()
		}},
	})
}
