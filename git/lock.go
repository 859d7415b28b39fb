package git

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// LockFile takes an exclusive flock on path, creating the file. It waits until ctx
// ends. Error: ErrBusy. Children that inherit the returned file keep the lock for as
// long as they live, so after a kill -9 the next holder waits for the orphaned git
// process instead of racing it. Closing the file releases the lock.
func LockFile(ctx context.Context, path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			_ = f.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		if err := Pause(ctx, wait); err != nil {
			_ = f.Close()
			return nil, fmt.Errorf("lock %s: %w: %w", path, ErrBusy, err)
		}
	}
}

// Pause waits for d, or until ctx ends, and then returns why.
func Pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
