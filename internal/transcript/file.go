package transcript

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/pfl-forge/pfl-forge"
)

const (
	// maxDir bounds all files of a directory together, in bytes. The oldest are removed.
	maxDir = 256 << 20
	// extension ends the names of transcripts; other files of the directory are left alone.
	extension = ".ndjson"
)

// file is the file with the transcript of an attempt, of all its claims. Where it cannot be
// written, that is logged once, and nothing is.
type file struct {
	w *Writer
	// file is nil if none is kept.
	file *os.File
}

// openFile opens the file of a writer's attempt to append to it, and removes old ones.
func openFile(w *Writer) *file {
	f := &file{w: w}
	if w.cfg.Dir == "" {
		return f
	}
	err := os.MkdirAll(w.cfg.Dir, 0o755)
	if err == nil {
		err = prune(w.cfg.Dir, maxDir)
	}
	if err == nil {
		f.file, err = open(w.cfg.Dir, FileName(w.to.Intent, w.attempt))
	}
	f.failed(err)
	return f
}

// open opens a file of a directory to append to it. It does not leave the directory, also if
// the name is a link.
func open(dir, name string) (*os.File, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	return root.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
}

// FileName returns the name of the file with an attempt's transcript, such as
// fix-login-001-implement-1.ndjson.
func FileName(intent forge.IntentID, a forge.Attempt) string {
	of := string(a.Task)
	if of == "" {
		of = string(intent)
	}
	return fmt.Sprintf("%s-%s-%d%s", of, a.Step, a.Number, extension)
}

// write appends whole lines.
func (f *file) write(lines []byte) {
	if f.file == nil {
		return
	}
	if _, err := f.file.Write(lines); err != nil {
		f.failed(err)
		f.close()
	}
}

// failed logs an error, if it is one.
func (f *file) failed(err error) {
	if err != nil {
		f.w.cfg.Log.Warn("cannot keep a transcript in a file", "dir", f.w.cfg.Dir, "error", err)
	}
}

// close closes the file. Nothing is written to it afterwards.
func (f *file) close() {
	if f.file != nil {
		_ = f.file.Close()
		f.file = nil
	}
}

// prune removes the oldest transcripts of a directory until the others have at most so many
// bytes.
func prune(dir string, most int64) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var all []fs.FileInfo
	var size int64
	for _, e := range entries {
		if filepath.Ext(e.Name()) != extension {
			continue
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			all = append(all, info)
			size += info.Size()
		}
	}
	slices.SortFunc(all, func(a, b fs.FileInfo) int {
		return cmp.Or(a.ModTime().Compare(b.ModTime()), cmp.Compare(a.Name(), b.Name()))
	})
	for _, info := range all {
		if size <= most {
			break
		}
		if err := os.Remove(filepath.Join(dir, info.Name())); err != nil {
			return err
		}
		size -= info.Size()
	}
	return nil
}
