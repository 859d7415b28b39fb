package forgedir

import (
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

// Larger files are refused before they are read.
const (
	maxDraftBytes  = 1 << 20
	maxIntentBytes = 4 << 20
	maxNotesBytes  = 256 << 20
)

// digest is the SHA-256 of a file's content; zero stands for no file.
type digest [sha256.Size]byte

func digestOf(data []byte) digest { return sha256.Sum256(data) }

func (d digest) String() string { return hex.EncodeToString(d[:]) }

// short is enough to tell a few versions of one file apart.
func (d digest) short() string { return d.String()[:12] }

// signature changes whenever a file does.
type signature struct {
	size  int64
	mtime time.Time
	inode any
}

func signatureOf(info fs.FileInfo) signature {
	s := signature{size: info.Size(), mtime: info.ModTime()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		s.inode = st.Ino
	}
	return s
}

// errKind says that something is no file that could be read.
type errKind struct{ what string }

func (e *errKind) Error() string { return "is " + e.what + ", not a regular file" }

// errTooLarge says that a file is larger than it may be.
type errTooLarge struct{ size, most int64 }

func (e *errTooLarge) Error() string {
	return fmt.Sprintf("is %d bytes long; at most %d are allowed", e.size, e.most)
}

// read returns a file's content. It never waits: a FIFO or a device is refused
// with *errKind before and after it was opened, without blocking.
func (w *Workspace) read(rel string, most int64) ([]byte, fs.FileInfo, error) {
	root, name, err := w.place(rel)
	if err != nil {
		return nil, nil, err
	}
	info, err := root.Lstat(name)
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, info, &errKind{kind(info.Mode())}
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
		return nil, info, &errKind{"being replaced"}
	}
	if opened.Size() > most {
		return nil, info, &errTooLarge{opened.Size(), most}
	}
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(data)) > most {
		err = &errTooLarge{int64(len(data)), most}
	}
	return data, opened, err
}

// unreadable says why a person's file was not read.
func unreadable(path string, err error) Problem {
	p := Problem{Path: path, Reason: err.Error()}
	var notFile *errKind
	var large *errTooLarge
	switch {
	case errors.As(err, &notFile):
		p.Hint = "put a regular file in its place, or remove it"
	case errors.As(err, &large):
		p.Hint = "shorten it"
	case errors.Is(err, fs.ErrPermission):
		p.Reason, p.Hint = "cannot be read: permission denied", "chmod u+r "+path
	}
	return p
}

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
