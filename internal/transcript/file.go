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
	// maxDir bounds all files of a directory together, in bytes: the oldest go first.
	maxDir    = 256 << 20
	extension = ".ndjson"
)

// file is the transcript of an attempt as a file, of all its deliveries and claims.
type file struct {
	w    *Writer
	file *os.File // nil: none is kept
}

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

// open does not leave the directory, also where the name is a link.
func open(dir, name string) (*os.File, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	return root.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
}

// FileName is the name of the file with an attempt's transcript.
func FileName(intent forge.IntentID, a forge.Attempt) string {
	of := string(a.Task)
	if of == "" {
		of = string(intent)
	}
	return fmt.Sprintf("%s-%s-%d%s", of, a.Step, a.Number, extension)
}

func (f *file) write(lines []byte) {
	if f.file == nil {
		return
	}
	if _, err := f.file.Write(lines); err != nil {
		f.failed(err)
		f.close()
	}
}

func (f *file) failed(err error) {
	if err != nil {
		f.w.cfg.Log.Warn("cannot keep a transcript in a file", "dir", f.w.cfg.Dir, "error", err)
	}
}

func (f *file) close() {
	if f.file != nil {
		_ = f.file.Close()
		f.file = nil
	}
}

// prune removes the oldest transcripts until those that are left have no more than
// some bytes.
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
