package process

import (
	"errors"
	"slices"
	"syscall"
)

// shortages are the errors of a machine, or of a bound on this service, that
// has no process, memory or descriptor left.
var shortages = []syscall.Errno{syscall.EAGAIN, syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE}

// Starved reports whether an error says that this service itself lacked a
// process, memory or a descriptor for what it was to start or to open. What a
// command lacks is no error of this service, but an output and an exit status.
func Starved(err error) bool {
	return slices.ContainsFunc(shortages, func(e syscall.Errno) bool { return errors.Is(err, e) })
}

// shortage returns the error number of an error for which Starved is true; 0 for any other.
func shortage(err error) syscall.Errno {
	if e, ok := errors.AsType[syscall.Errno](err); ok && slices.Contains(shortages, e) {
		return e
	}
	return 0
}

// startError says why a command was not started, in the words of its supervisor.
type startError struct {
	text string
	// lack is the shortage that it was; 0 if it was none.
	lack syscall.Errno
}

func (e *startError) Error() string { return e.text }

// Unwrap returns the shortage; nil if it was none.
func (e *startError) Unwrap() error {
	if e.lack == 0 {
		return nil
	}
	return e.lack
}
