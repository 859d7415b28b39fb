package natsd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

const (
	pollEvery   = 2 * time.Millisecond
	maxLockFile = 4 << 10
)

// HeldError says which process owns the store.
type HeldError struct {
	Dir     string    // the store directory
	PID     int       // 0 when the owner has not written it yet
	Since   time.Time // when the owner started, UTC
	Purpose string    // what the owner said that it does
}

// Error names the owner and what to do.
func (e *HeldError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("natsd: store %s is in use by another process: wait for it to end", e.Dir)
	}
	return fmt.Sprintf("natsd: store %s is in use by process %d (%q) since %s: wait for it to end, or join it",
		e.Dir, e.PID, e.Purpose, e.Since.Local().Format("2006-01-02 15:04:05"))
}

// holder is the content of the lock file. It only informs: the flock decides.
type holder struct {
	PID     int       `json:"pid"`
	ID      string    `json:"id"`
	Since   time.Time `json:"since"`
	Purpose string    `json:"purpose"`
}

// lock is a held flock. Explicit release matters: a child process between fork and
// exec shares the open file, and closing alone would leave the lock with it.
type lock struct {
	file *os.File
	dir  *storeDir
}

// acquire takes the store or returns a *HeldError. It waits up to patience while
// the lock is held without a living owner on record: a finder that just looks, an
// owner that has not written its name, the last breath of a killed process.
func acquire(ctx context.Context, d *storeDir, me holder, patience time.Duration) (*lock, error) {
	path := filepath.Join(d.path, lockFile)
	deadline := time.Now().Add(patience)
	for {
		f, err := d.root.OpenFile(lockFile, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, explain("open", path, err)
		}
		l := &lock{file: f, dir: d}
		switch err := flock(f, unix.LOCK_EX); {
		case err == nil && l.current():
			if err := l.write(me); err != nil {
				l.release()
				return nil, explain("write", path, err)
			}
			return l, nil
		case err == nil: // of a file that was removed meanwhile
			_ = f.Close()
			continue
		case !errors.Is(err, unix.EWOULDBLOCK):
			_ = f.Close()
			return nil, explain("lock", path, err)
		}
		h := readHolder(f)
		_ = f.Close()
		if alive(h.PID) || time.Now().After(deadline) {
			return nil, &HeldError{Dir: d.path, PID: h.PID, Since: h.Since, Purpose: h.Purpose}
		}
		if err := pause(ctx); err != nil {
			return nil, err
		}
	}
}

// current says whether the locked file is still the one in the directory: somebody
// may have removed the store, and a lock on a removed file protects nothing.
func (l *lock) current() bool {
	mine, err1 := l.file.Stat()
	there, err2 := os.Lstat(filepath.Join(l.dir.path, lockFile))
	return err1 == nil && err2 == nil && os.SameFile(mine, there)
}

func (l *lock) write(h holder) error {
	b, err := json.Marshal(h)
	if err != nil {
		return err
	}
	if err := l.file.Truncate(0); err != nil {
		return err
	}
	_, err = l.file.WriteAt(append(b, '\n'), 0)
	return err
}

func (l *lock) release() {
	_ = l.file.Truncate(0)
	_ = unix.Flock(int(l.file.Fd()), unix.LOCK_UN)
	_ = l.file.Close()
}

// isHeld looks at the lock without waiting. The shared lock it may take for an
// instant is what acquire's patience is for.
func isHeld(d *storeDir) (holder, bool, error) {
	f, err := d.root.Open(lockFile)
	if err != nil {
		return holder{}, false, err
	}
	defer func() { _ = f.Close() }()
	switch err := flock(f, unix.LOCK_SH); {
	case errors.Is(err, unix.EWOULDBLOCK):
		return readHolder(f), true, nil
	case err != nil:
		return holder{}, false, err
	}
	return holder{}, false, unix.Flock(int(f.Fd()), unix.LOCK_UN)
}

func flock(f *os.File, how int) error {
	for {
		err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// readHolder returns the zero holder for anything that is not a whole record.
func readHolder(f *os.File) holder {
	var h holder
	b, err := io.ReadAll(io.NewSectionReader(f, 0, maxLockFile))
	if err != nil || json.Unmarshal(b, &h) != nil {
		return holder{}
	}
	return h
}

func alive(pid int) bool {
	if pid <= 0 {
		return false
	}
	err := unix.Kill(pid, 0)
	return err == nil || errors.Is(err, unix.EPERM)
}

func pause(ctx context.Context) error {
	t := time.NewTimer(pollEvery)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return fmt.Errorf("natsd: %w", ctx.Err())
	case <-t.C:
		return nil
	}
}
