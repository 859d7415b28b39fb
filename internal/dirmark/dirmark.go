// Package dirmark tells whether a directory is still the one that it was. One that was removed, or whose volume is not mounted, can
// often be made anew and written to, and then has nothing of what a program left there.
package dirmark

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// File is by what a directory is known again. It lies in it, with a text that no other directory has.
const File = ".life"

// ErrGone says that a directory is another one than before, or none.
var ErrGone = errors.New("what was in it is gone: start the service again, which makes it anew")

// Mark knows one directory. It is for one goroutine at a time.
type Mark struct {
	// dir is made if it is missing before it was marked.
	dir string
	// text is the content of File; empty before it is known.
	text string
}

// New returns the mark of a directory. Where it cannot be read or written, the first Check that can does it.
func New(dir string) *Mark {
	m := &Mark{dir: dir}
	_ = m.Check() // the next one says why
	return m
}

// Check takes the mark that the directory has, or makes one: a second process that waits for the end of the first one takes nothing
// from that. From then on it returns ErrGone if the directory is another one.
func (m *Mark) Check() error {
	path := filepath.Join(m.dir, File)
	text, err := os.ReadFile(path)
	switch {
	case m.text != "" && (errors.Is(err, fs.ErrNotExist) || err == nil && string(text) != m.text):
		return ErrGone
	case m.text != "":
		return err
	case err == nil && len(text) > 0:
		m.text = string(text)
		return nil
	}
	own := rand.Text()
	if err := os.MkdirAll(m.dir, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(path, []byte(own), 0o600); err != nil {
		return err
	}
	m.text = own
	return nil
}
