package sandbox

import (
	"fmt"
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// denied are system calls that no build, test or agent needs and that reach large parts of the
// kernel, other than by what the sandbox mounts: ways around it that were found in the past went
// through these. Most need privileges that a command has not got; the filter makes that two
// walls. Programs have another way where the error says that the call does not exist.
var denied = map[unix.Errno][]uint32{
	unix.ENOSYS: {
		unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER, // a second way to most calls, past this filter
		unix.SYS_USERFAULTFD, unix.SYS_MEMFD_SECRET,
	},
	unix.EPERM: {
		unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL, // keyrings are not divided by namespaces
		unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_SYSLOG, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_PIDFD_GETFD, unix.SYS_KCMP,
		unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK,
		unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE, unix.SYS_MOUNT_SETATTR, unix.SYS_SETNS, unix.SYS_UNSHARE,
		unix.SYS_KEXEC_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_REBOOT,
		unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD,
		unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_ADJTIMEX, unix.SYS_CLOCK_ADJTIME, unix.SYS_VHANGUP,
	},
}

// families are the kinds of sockets that a command may open: those of the machine, of the
// internet, and the one by which programs list network interfaces. Others, such as vsock, reach the
// host of a virtual machine or rarely used parts of the kernel.
var families = []uint32{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}

// architectures are the names by which the kernel knows the system calls that are filtered.
var architectures = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}

// Offsets in the kernel's struct seccomp_data, on little-endian machines.
const (
	atNumber = 0
	atArch   = 4
	atFamily = 16 // the lower half of the first argument
)

// x32Calls is where the numbers of another set of system calls begin that amd64 has.
const x32Calls = 0x40000000

// program returns the filter. Calls of another architecture, such as those of 32-bit programs, do
// not exist: their numbers mean something else.
func program(arch uint32) []bpf.Instruction {
	refuse := func(e unix.Errno) bpf.Instruction {
		return bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(e)}
	}
	p := []bpf.Instruction{
		bpf.LoadAbsolute{Off: atArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: arch, SkipTrue: 1},
		refuse(unix.ENOSYS),
		bpf.LoadAbsolute{Off: atNumber, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpLessThan, Val: x32Calls, SkipTrue: 1},
		refuse(unix.ENOSYS),
	}
	for e, calls := range denied {
		for _, nr := range calls {
			p = append(p, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: nr, SkipTrue: 1}, refuse(e))
		}
	}
	p = append(p,
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.SYS_SOCKET, SkipTrue: uint8(len(families) + 2)},
		bpf.LoadAbsolute{Off: atFamily, Size: 4})
	for i, family := range families {
		p = append(p, bpf.JumpIf{Cond: bpf.JumpEqual, Val: family, SkipTrue: uint8(len(families) - i)})
	}
	return slices.Concat(p, []bpf.Instruction{refuse(unix.EAFNOSUPPORT), bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW}})
}

// filterCalls has the kernel refuse system calls of the calling thread and of the processes that
// it starts, for good. It needs PR_SET_NO_NEW_PRIVS before it.
func filterCalls() error {
	arch, ok := architectures[runtime.GOARCH]
	if !ok {
		return fmt.Errorf("system calls of %s cannot be filtered", runtime.GOARCH)
	}
	raw, err := bpf.Assemble(program(arch))
	if err != nil {
		return fmt.Errorf("filter system calls: %w", err)
	}
	list := make([]unix.SockFilter, len(raw))
	for i, in := range raw {
		list[i] = unix.SockFilter{Code: in.Op, Jt: in.Jt, Jf: in.Jf, K: in.K}
	}
	prog := unix.SockFprog{Len: uint16(len(list)), Filter: &list[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog))) //nolint:gosec // takes a pointer
	if errno != 0 {
		return fmt.Errorf("filter system calls: %w", errno)
	}
	return nil
}
