package disk

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// The sizes in bytes from which on a file is refused before it is read.
const (
	MaxDraft  = 1 << 20
	MaxIntent = 4 << 20
	MaxOther  = 256 << 20 // files that only this program writes
)

// maxWaits bounds how often a file that never comes to rest is looked at again.
const maxWaits = 20

// Digest is the SHA-256 of a file's content; the zero Digest stands for no file.
type Digest [sha256.Size]byte

// DigestOf returns the digest of a content.
func DigestOf(data []byte) Digest { return sha256.Sum256(data) }

// String returns the digest in hexadecimal digits.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// Short returns so much of the digest as tells a few versions of one file apart.
func (d Digest) Short() string { return d.String()[:12] }

// Same reports whether two descriptions are of one file that was not saved between them.
func Same(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// racy is the age up to which a file may change once more with the same size and time,
// since clocks of file systems are coarse.
const racy = 2 * time.Second

// Quiet reports whether Same will see the file's next change: it is long enough since the
// last one.
func Quiet(info fs.FileInfo) bool { return time.Since(info.ModTime()) > racy }

// KindError reports that something is no file that could be read.
type KindError struct{ What string }

// Error says what is there instead.
func (e *KindError) Error() string { return "is " + e.What + ", not a regular file" }

// SizeError reports that a file is larger than it may be; both sizes are in bytes.
type SizeError struct{ Size, Most int64 }

// Error gives both sizes.
func (e *SizeError) Error() string {
	return fmt.Sprintf("is %d bytes long; at most %d are allowed", e.Size, e.Most)
}

// IgnoreMissing returns nil for the error that there is no such file.
func IgnoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Read returns a file's content, and a description of the file that was read. It
// never waits: a pipe or a device is refused with *KindError before and after it was
// opened, without blocking. More than most bytes are a *SizeError.
func (d *Disk) Read(rel string, most int64) ([]byte, fs.FileInfo, error) {
	root, name, err := d.place(rel)
	if err != nil {
		return nil, nil, err
	}
	info, err := root.Lstat(name)
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, info, &KindError{kind(info.Mode())}
	}
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, info, err
	}
	defer func() { _ = f.Close() }()
	opened, err := f.Stat()
	if err != nil {
		return nil, info, err
	}
	if !opened.Mode().IsRegular() || !os.SameFile(info, opened) {
		return nil, info, &KindError{"being replaced"}
	}
	if opened.Size() > most {
		return nil, info, &SizeError{opened.Size(), most}
	}
	data := bytes.NewBuffer(make([]byte, 0, opened.Size()+bytes.MinRead)) // with room for the read that finds the end
	_, err = data.ReadFrom(io.LimitReader(f, most+1))
	if err == nil && int64(data.Len()) > most {
		err = &SizeError{int64(data.Len()), most}
	}
	return data.Bytes(), opened, err
}

// ReadSettled reads a file that a person may be saving right now: it waits until the
// last change is as old as Settle. A file that never comes to rest is a *KindError.
func (d *Disk) ReadSettled(ctx context.Context, rel string, most int64) ([]byte, fs.FileInfo, error) {
	for range maxWaits {
		data, info, err := d.Read(rel, most)
		if err != nil {
			return data, info, err
		}
		age := time.Since(info.ModTime())
		if age < 0 || age >= d.Settle {
			return data, info, nil
		}
		timer := time.NewTimer(d.Settle - age)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, nil, ctx.Err()
		case <-timer.C:
		}
	}
	return nil, nil, &KindError{"still being written"}
}

// DigestAt returns the digest of the file at a path, zero if there is none.
func (d *Disk) DigestAt(rel string) (Digest, error) {
	data, _, err := d.Read(rel, MaxOther)
	if errors.Is(err, fs.ErrNotExist) {
		return Digest{}, nil
	}
	return DigestOf(data), err
}

// kind returns a name for people of the kind of a file.
func kind(m fs.FileMode) string {
	switch {
	case m&fs.ModeSymlink != 0:
		return "a symbolic link"
	case m.IsDir():
		return "a directory"
	case m&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	case m&fs.ModeDevice != 0:
		return "a device"
	case m.IsRegular():
		return "a file"
	}
	return "a special file"
}
