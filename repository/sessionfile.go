package repository

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
)

// maxSession bounds the files of a session, in bytes before they are compressed. One
// that is larger is not handed on: elsewhere, the task goes on without it.
const maxSession = 64 << 20

// savedSession is the head of what is stored of a session, before its files.
type savedSession struct {
	Host       string          `json:"host"`           // where it was saved
	Session    string          `json:"session"`        // the conversation's id
	Agent      string          `json:"agent"`          // whose files these are
	Checkpoint json.RawMessage `json:"note,omitempty"` // of the worker
	Used       *usageLedger    `json:"used,omitempty"` // by the attempt
}

const sessionHead = "session.json"

// sessionFile is a file of a session; its name is relative to the state directory.
type sessionFile struct {
	name string
	data []byte
}

// readSession reads files as they are now: their agent may be writing on.
func readSession(dir string, files []string) ([]sessionFile, error) {
	var list []sessionFile
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
		list = append(list, sessionFile{name, data})
	}
	return list, nil
}

func readFile(dir, name string, left int64) ([]byte, error) {
	f, err := os.OpenInRoot(dir, name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, left+1))
}

// packSession returns the files behind the head.
func packSession(head savedSession, files []sessionFile) ([]byte, error) {
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
	errs := []error{addFile(w, sessionHead, data)}
	for _, f := range files {
		errs = append(errs, addFile(w, path.Join("files", filepath.ToSlash(f.name)), f.data))
	}
	err = errors.Join(append(errs, w.Close(), zip.Close())...)
	return out.Bytes(), err
}

func addFile(w *tar.Writer, name string, data []byte) error {
	if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(data))}); err != nil {
		return err
	}
	_, err := w.Write(data)
	return err
}

// errKnown ends the reading of a session whose files are here already.
var errKnown = errors.New("the session is known")

// unpackSession reads what packSession wrote. accept sees the head, and prepares the
// directory, before any file is written; its error ends the reading.
func unpackSession(r io.Reader, dir string, accept func(savedSession) error) error {
	zip, err := gzip.NewReader(r)
	if err != nil {
		return err
	}
	files := tar.NewReader(zip)
	h, err := files.Next()
	if err != nil || h.Name != sessionHead {
		return fmt.Errorf("the session has no head: %w", err)
	}
	var head savedSession
	if err := json.NewDecoder(io.LimitReader(files, 16<<20)).Decode(&head); err != nil {
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
	for {
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
}

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
