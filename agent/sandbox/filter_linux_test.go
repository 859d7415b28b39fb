package sandbox

import (
	"encoding/binary"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// TestForeignCallsDoNotExist runs the filter of each architecture on system
// calls, as the kernel does: none of another architecture is let through,
// whatever its number means there or here, such as those of 32-bit programs and
// of x32. The machine need not have such programs, and no call is made.
func TestForeignCallsDoNotExist(t *testing.T) {
	const getpid, socket = unix.SYS_GETPID, unix.SYS_SOCKET
	const refused = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	for name, own := range architectures {
		vm, err := bpf.NewVM(program(own))
		if err != nil {
			t.Fatal(err)
		}
		// says returns what the filter says of a call with this first argument.
		// The machine for tests reads numbers with their highest byte first,
		// and the kernel's reads them as the processor has them.
		says := func(arch, nr, arg uint32) uint32 {
			var data [64]byte // struct seccomp_data
			binary.BigEndian.PutUint32(data[atNumber:], nr)
			binary.BigEndian.PutUint32(data[atArch:], arch)
			binary.BigEndian.PutUint32(data[atFamily:], arg)
			verdict, err := vm.Run(data[:])
			if err != nil {
				t.Fatal(err)
			}
			return uint32(verdict)
		}
		if got := says(own, getpid, 0); got != unix.SECCOMP_RET_ALLOW {
			t.Errorf("%s: a harmless call is answered with %#x", name, got)
		}
		if got, want := says(own, unix.SYS_BPF, 0), unix.SECCOMP_RET_ERRNO|uint32(unix.EPERM); got != want {
			t.Errorf("%s: bpf is answered with %#x, want %#x", name, got, want)
		}
		for family, want := range map[uint32]uint32{
			unix.AF_INET: unix.SECCOMP_RET_ALLOW, unix.AF_VSOCK: unix.SECCOMP_RET_ERRNO | uint32(unix.EAFNOSUPPORT),
		} {
			if got := says(own, socket, family); got != want {
				t.Errorf("%s: a socket of family %d is answered with %#x, want %#x", name, family, got, want)
			}
		}
		others := []uint32{unix.AUDIT_ARCH_I386, unix.AUDIT_ARCH_ARM, unix.AUDIT_ARCH_X86_64, unix.AUDIT_ARCH_AARCH64, 0}
		for nr := range uint32(1024) {
			for _, arch := range others {
				if got := says(arch, nr, unix.AF_INET); arch != own && got != refused {
					t.Fatalf("%s: call %d of architecture %#x is answered with %#x, want %#x", name, nr, arch, got, refused)
				}
			}
			if got := says(own, x32Calls|nr, unix.AF_INET); got != refused {
				t.Fatalf("%s: call %d of x32 is answered with %#x, want %#x", name, nr, got, refused)
			}
		}
	}
}
