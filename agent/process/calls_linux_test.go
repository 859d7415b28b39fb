package process

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/pfl-forge/pfl-forge/agent/sandbox"
)

// systemCalls are probes of a sandbox: by name what is called, and the error that is expected.
// Their arguments are such that the kernel would answer something else.
var systemCalls = []struct {
	name string
	call func() error
	want error
}{
	{"io_uring_setup", raw(unix.SYS_IO_URING_SETUP), unix.ENOSYS},
	{"io_uring_enter", raw(unix.SYS_IO_URING_ENTER), unix.ENOSYS},
	{"io_uring_register", raw(unix.SYS_IO_URING_REGISTER), unix.ENOSYS},
	{"userfaultfd", raw(unix.SYS_USERFAULTFD), unix.ENOSYS},
	{"memfd_secret", raw(unix.SYS_MEMFD_SECRET), unix.ENOSYS},
	{"keyctl", raw(unix.SYS_KEYCTL), unix.EPERM},
	{"add_key", raw(unix.SYS_ADD_KEY), unix.EPERM},
	{"request_key", raw(unix.SYS_REQUEST_KEY), unix.EPERM},
	{"bpf", raw(unix.SYS_BPF, 99), unix.EPERM},
	{"perf_event_open", raw(unix.SYS_PERF_EVENT_OPEN), unix.EPERM},
	{"open_by_handle_at", raw(unix.SYS_OPEN_BY_HANDLE_AT), unix.EPERM},
	{"pidfd_getfd", raw(unix.SYS_PIDFD_GETFD, 999), unix.EPERM},
	{"kcmp", raw(unix.SYS_KCMP, 1, 1, 999), unix.EPERM},
	{"syslog", raw(unix.SYS_SYSLOG, 99), unix.EPERM},
	{"mount", raw(unix.SYS_MOUNT), unix.EPERM},
	{"umount2", raw(unix.SYS_UMOUNT2, 0, 0xffff), unix.EPERM},
	{"fsopen", raw(unix.SYS_FSOPEN), unix.EPERM},
	{"open_tree", raw(unix.SYS_OPEN_TREE, 0, 0, 0xffff), unix.EPERM},
	{"move_mount", raw(unix.SYS_MOVE_MOUNT, 0, 0, 0, 0, 0xffff), unix.EPERM},
	{"mount_setattr", raw(unix.SYS_MOUNT_SETATTR, 0, 0, 0xffff), unix.EPERM},
	{"setns", raw(unix.SYS_SETNS, 999), unix.EPERM},
	{"unshare", raw(unix.SYS_UNSHARE, 1), unix.EPERM},
	{"kexec_load", raw(unix.SYS_KEXEC_LOAD), unix.EPERM},
	{"finit_module", raw(unix.SYS_FINIT_MODULE, 999), unix.EPERM},
	{"quotactl_fd", raw(unix.SYS_QUOTACTL_FD, 999), unix.EPERM},
	{"adjtimex", raw(unix.SYS_ADJTIMEX), unix.EPERM},
	{"a call of x32", raw(0x40000000 + unix.SYS_GETPID), unix.ENOSYS},
	{"vsock", socket(unix.AF_VSOCK), unix.EAFNOSUPPORT},
	{"packets", socket(unix.AF_PACKET), unix.EAFNOSUPPORT},
	{"crypto of the kernel", socket(unix.AF_ALG), unix.EAFNOSUPPORT},
	{"bluetooth", socket(unix.AF_BLUETOOTH), unix.EAFNOSUPPORT},
	{"CAN", socket(unix.AF_CAN), unix.EAFNOSUPPORT},
	{"TIPC", socket(unix.AF_TIPC), unix.EAFNOSUPPORT},
	{"XDP", socket(unix.AF_XDP), unix.EAFNOSUPPORT},
	{"RDS", socket(unix.AF_RDS), unix.EAFNOSUPPORT},
	{"a family with more bits", func() error { return raw(unix.SYS_SOCKET, 1<<32|unix.AF_VSOCK, unix.SOCK_STREAM)() }, unix.EAFNOSUPPORT},
	{"unix", socket(unix.AF_UNIX), nil},
	{"internet", socket(unix.AF_INET), nil},
	{"internet 6", socket(unix.AF_INET6), nil},
	{"getpid", raw(unix.SYS_GETPID), nil},
}

// raw returns a probe that makes one system call.
func raw(nr uintptr, args ...uintptr) func() error {
	return func() error {
		var a [6]uintptr
		copy(a[:], args)
		if _, _, errno := unix.Syscall6(nr, a[0], a[1], a[2], a[3], a[4], a[5]); errno != 0 {
			return errno
		}
		return nil
	}
}

// socket returns a probe that opens one.
func socket(family int) func() error {
	return func() error {
		_, err := unix.Socket(family, unix.SOCK_STREAM, 0)
		return err
	}
}

// makeCalls makes all system calls, prints a line for each answer that is not expected, and ends
// this process.
func makeCalls() {
	for _, c := range systemCalls {
		if err := c.call(); err != c.want { //nolint:errorlint // the number itself
			_, _ = fmt.Fprintf(os.Stdout, "%s: %v, want %v\n", c.name, err, c.want)
		}
	}
	score, err := os.ReadFile("/proc/self/oom_score_adj")
	if err != nil || strings.TrimSpace(string(score)) != "1000" {
		_, _ = fmt.Fprintf(os.Stdout, "oom_score_adj: %q, %v\n", score, err)
	}
	os.Exit(0)
}

// TestSystemCalls has a command in a sandbox make system calls that reach around it.
func TestSystemCalls(t *testing.T) {
	t.Parallel()
	if !offered(t) {
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := confined(t, "exec "+self)
	c.Sandbox.Mounts = append(c.Sandbox.Mounts, sandbox.Path(self, sandbox.ReadOnly)...)
	c.Env = append(c.Env, "TEST_SYSTEM_CALLS=1")
	if r, err := Run(t.Context(), c); err != nil || r.ExitCode != 0 || len(r.Output) > 0 {
		t.Errorf("code %d, %v\n%s", r.ExitCode, err, r.Output)
	}
}

// TestCommandsAreEndedFirst has a command without a sandbox be the first that a machine without
// memory ends, too, and one with a sandbox keep to the bounds of shared memory.
func TestCommandsAreEndedFirst(t *testing.T) {
	t.Parallel()
	if r := run(t, shell(t, "cat /proc/self/oom_score_adj")); strings.TrimSpace(string(r.Output)) != "1000" {
		t.Errorf("got %q", r.Output)
	}
	if !offered(t) {
		return
	}
	r := run(t, confined(t, `set -- $(df -k /dev/shm | tail -n 1); test "$2" = 1048576 && ulimit -f`))
	if strings.TrimSpace(string(r.Output)) != fmt.Sprint(64<<30/512) {
		t.Errorf("got %q", r.Output)
	}
}
