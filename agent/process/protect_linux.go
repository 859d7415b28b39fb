package process

import (
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// protected says that Protect was called.
var protected atomic.Bool

// Protect keeps all processes of the same user, such as commands without a sandbox, from
// tracing this one and from reading its memory, environment and open files, and has no
// core dumped of it. It does the same for each supervisor from now on. Root, and who may trace
// everything (CAP_SYS_PTRACE), can still do so, and what the process starts is not
// protected.
func Protect() error {
	protected.Store(true)
	return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
}
