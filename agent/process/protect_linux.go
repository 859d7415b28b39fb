package process

import (
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// protected says that Protect was called.
var protected atomic.Bool

// Protect keeps the commands of this process, which run as the same user, from tracing
// it and from opening its files, and does the same for each supervisor from now on. It
// is for a process whose commands have no sandbox of their own.
func Protect() error {
	protected.Store(true)
	return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
}
