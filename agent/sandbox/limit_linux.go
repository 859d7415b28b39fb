package sandbox

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// maxFile bounds one file that a command writes, in bytes.
const maxFile = 64 << 30

// setLimits sets the limits that all processes inside share.
func (s *Spec) setLimits() error {
	LimitFiles()
	if os.Getuid() == 0 {
		return nil // it does not apply to root; see limitProcesses
	}
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NPROC, &old); err != nil {
		return err
	}
	n := min(uint64(s.processes()), old.Max)
	return unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: n, Max: n})
}

// LimitFiles bounds each file that this process and its children write, and has
// them leave no core dump: it would be written to the checkout, or handed to a
// program of the machine that runs outside of every sandbox.
func LimitFiles() {
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
	_ = unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: maxFile, Max: maxFile})
}

// processes returns the most processes at once.
func (s *Spec) processes() int {
	if s.Processes > 0 {
		return s.Processes
	}
	return DefaultProcesses
}

// limitProcesses sets pid_max, which since Linux 6.14 exists per namespace; on older
// kernels it is the whole machine's and is left alone. proc is where /proc is mounted.
func (s *Spec) limitProcesses(proc string) {
	if !kernelAtLeast(6, 14) {
		return
	}
	const reserved = 300 // ids below this are never reused
	_ = os.WriteFile(proc+"/sys/kernel/pid_max", []byte(strconv.Itoa(s.processes()+reserved)), 0o644)
}

// kernelAtLeast reports whether the kernel's version is at least major.minor.
func kernelAtLeast(major, minor int) bool {
	var name unix.Utsname
	if unix.Uname(&name) != nil {
		return false
	}
	var a, b int
	_, err := fmt.Sscanf(unix.ByteSliceToString(name.Release[:]), "%d.%d", &a, &b)
	return err == nil && (a > major || a == major && b >= minor)
}

// startLoopback brings up loopback in the sandbox's own network.
func (s *Spec) startLoopback() error {
	if s.Network != NetworkNone {
		return nil
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	req, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	req.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, req); err != nil {
		return fmt.Errorf("start loopback: %w", err)
	}
	return nil
}

// Offer listens on s.Listen inside, and sends the listener through a socket to Receive.
func (s *Spec) Offer(socket *os.File) error {
	l, err := net.Listen("tcp", s.Listen) //nolint:noctx // it takes no time
	if err != nil {
		return fmt.Errorf("listen inside: %w", err)
	}
	defer func() { _ = l.Close() }()
	f, err := l.(*net.TCPListener).File()
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Sendmsg(int(socket.Fd()), []byte{1}, unix.UnixRights(int(f.Fd())), nil, 0)
}

// Restrict drops every privilege of the calling thread, and so of the processes that it
// starts, for good. The caller has to be locked to the thread.
func Restrict() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return err
	}
	for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
		_ = unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0) // one that the kernel does not know cannot be dropped
	}
	_, _ = unix.KeyctlJoinSessionKeyring("") // a new keyring, without the user's keys
	scopeAbstractSockets()
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&header, &none[0]); err != nil {
		return fmt.Errorf("drop privileges: %w", err)
	}
	runtime.KeepAlive(none)
	return filterCalls()
}

// HidesAbstractSockets reports whether the machine's abstract unix sockets are out of
// reach although its network is not. It takes the sixth version of Landlock.
func HidesAbstractSockets() bool {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	return errno == 0 && version >= 6
}

// rulesetAttr is the kernel's struct landlock_ruleset_attr.
type rulesetAttr struct {
	fs, net, scoped uint64
}

// scopeAbstractSockets keeps the machine's abstract unix sockets out of reach, since
// Linux 6.12. They belong to the network, not to a file system, so mounts do not hide
// them.
func scopeAbstractSockets() {
	if !HidesAbstractSockets() {
		return
	}
	const abstractSockets = 1 << 0
	attr := rulesetAttr{scoped: abstractSockets}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0) //nolint:gosec // takes a pointer
	if errno != 0 {
		return
	}
	_, _, _ = unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0) //nolint:dogsled // best effort: older kernels lack it
	_ = unix.Close(int(fd))
}

// LimitsProcesses reports whether a sandbox limits the number of its processes without
// a control group: since Linux 6.14, or for a user other than root.
func LimitsProcesses() bool { return os.Getuid() != 0 || kernelAtLeast(6, 14) }
