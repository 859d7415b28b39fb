package sessions

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/pfl-forge/pfl-forge/bus/objects"
	"github.com/pfl-forge/pfl-forge/jobs/ledger"
)

const (
	// maxSession bounds the files of a session, in bytes before compression. A larger
	// session is not stored: another replica then starts with a recap.
	maxSession = 64 << 20
	// maxFiles bounds their number: empty ones take no bytes of an archive, and
	// still a place on the disk.
	maxFiles = 2000
	// maxHead bounds the head of a stored session, in bytes.
	maxHead = 16 << 20
)

// saved is the first entry of a stored session, before its files.
type saved struct {
	// Host is the id of the state directory that it was saved from.
	Host string `json:"host"`
	// Session is the session's id, as the command has it.
	Session string `json:"session"`
	// Agent is the name of the back end that wrote the files.
	Agent string `json:"agent"`
	// Checkpoint is the worker's own state, opaque to this package.
	Checkpoint json.RawMessage `json:"note,omitempty"`
	// Used is the attempt's usage so far.
	Used *ledger.Ledger `json:"used,omitempty"`
}

// headName is the name of the first entry.
const headName = "session.json"

// file is a file of a session; its name is relative to the state directory.
type file struct {
	name string
	data []byte
}

// read reads files of a state directory. The agent may be writing them: one
// that is gone is skipped, and one that grows is read as far as it was.
func read(dir string, files []string) ([]file, error) {
	var list []file
	left := int64(maxSession)
	for _, name := range files {
		data, err := readFile(dir, name, left)
		if errors.Is(err, os.ErrNotExist) {
			continue // not any more
		}
		if err != nil {
			return nil, err
		}
		if left -= int64(len(data)); left < 0 {
			return nil, fmt.Errorf("session: %w", objects.ErrTooLarge)
		}
		list = append(list, file{name, data})
	}
	return list, nil
}

// readFile reads at most left+1 bytes of a file, so that the caller can tell that it
// is too long. Links cannot lead out of dir.
func readFile(dir, name string, left int64) ([]byte, error) {
	f, err := os.OpenInRoot(dir, name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, left+1))
}

// pack returns a compressed archive of the head and the files.
func pack(head saved, files []file) ([]byte, error) {
	data, err := json.Marshal(head)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	zip, err := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	w := tar.NewWriter(zip)
	errs := []error{addFile(w, headName, data)}
	for _, f := range files {
		errs = append(errs, addFile(w, path.Join("files", filepath.ToSlash(f.name)), f.data))
	}
	err = errors.Join(append(errs, w.Close(), zip.Close())...)
	return out.Bytes(), err
}

// addFile adds one entry to an archive.
func addFile(w *tar.Writer, name string, data []byte) error {
	if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(data))}); err != nil {
		return err
	}
	_, err := w.Write(data)
	return err
}

// errKnown ends the download of a session whose files are here already.
var errKnown = errors.New("the session is known")

// unpack writes the files of an archive by pack into dir. accept gets
// the head before any file is written, and prepares the directory; its error ends the
// reading. Entries cannot be written outside of dir.
func unpack(r io.Reader, dir string, accept func(saved) error) error {
	zip, err := gzip.NewReader(r)
	if err != nil {
		return err
	}
	files := tar.NewReader(zip)
	h, err := files.Next()
	if err != nil || h.Name != headName {
		return fmt.Errorf("the session has no head: %w", err)
	}
	var head saved
	if err := json.NewDecoder(io.LimitReader(files, maxHead)).Decode(&head); err != nil {
		return err
	}
	if err := accept(head); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	left := int64(maxSession)
	for range maxFiles {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if left -= h.Size; left < 0 || h.Typeflag != tar.TypeReg {
			return errors.New("the session is damaged")
		}
		if err := unpackFile(root, h.Name, files); err != nil {
			return err
		}
	}
	return fmt.Errorf("the session has more than %d files", maxFiles)
}

// unpackFile writes one entry; a name that leads out of the directory is an error.
func unpackFile(root *os.Root, name string, r io.Reader) error {
	rel, err := filepath.Rel("files", filepath.FromSlash(name))
	if err != nil || !filepath.IsLocal(rel) || rel == "." {
		return fmt.Errorf("the session has a file %q: %w", name, fs.ErrInvalid)
	}
	if err := root.MkdirAll(filepath.Dir(rel), 0o700); err != nil {
		return err
	}
	f, err := root.OpenFile(rel, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	return errors.Join(err, f.Close())
}
