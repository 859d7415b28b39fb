//go:build !linux

package git

import (
	"errors"
	"os"
)

type aMount struct {
	at   string
	ours bool
}

func mountOverlay(_, _, _, _ string) error { return errors.ErrUnsupported }

func mountsBelow(string) ([]aMount, error) { return nil, nil }

func unmountAll(string) error { return nil }

func unmountBelow(string) error { return nil }

func inPrivate(func() error) error { return errors.ErrUnsupported }

func unmount(string) error { return nil }

func sameFile(_, _ string) bool { return true }

// keeper unmounts what this process has mounted, should it be killed: here nothing.
type keeper struct{}

func (*keeper) start(string, *os.File) error { return errors.ErrUnsupported }

func (*keeper) stop() {}
