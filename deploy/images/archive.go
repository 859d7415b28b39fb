package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// writeArchive writes an index as a tar of an OCI layout. The same index gives the same
// file. at is the time of all its files. The work is done in a folder beside the file,
// on the same file system, so that the rename at the end cannot fail for want of that.
func writeArchive(file string, index v1.ImageIndex, at time.Time) error {
	dir, err := os.MkdirTemp(filepath.Dir(file), ".oci-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	content := filepath.Join(dir, "content")
	if _, err := layout.Write(content, index); err != nil {
		return err
	}
	// The new archive takes the place of an old one when it is whole.
	made := filepath.Join(dir, "archive")
	f, err := os.Create(made)
	if err != nil {
		return err
	}
	if err := errors.Join(tarFolder(f, content, at), f.Close()); err != nil {
		return err
	}
	return os.Rename(made, file)
}

// tarFolder writes the files of a folder in the order of their names.
// Owner, mode and time are the same for all files, so nothing of this machine is in the archive.
func tarFolder(out io.Writer, dir string, at time.Time) error {
	files, w := os.DirFS(dir), tar.NewWriter(out)
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: info.Size(), ModTime: at, Format: tar.FormatUSTAR}); err != nil {
			return err
		}
		f, err := files.Open(name)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		_, err = io.Copy(w, f)
		return err
	})
	return errors.Join(err, w.Close())
}

// openArchive unpacks an OCI archive, and returns its index and a function that
// removes the unpacked files. The function is nil with an error. Images of the
// index are read from the unpacked files when they are used.
func openArchive(file string) (v1.ImageIndex, func(), error) {
	dir, err := os.MkdirTemp("", "pfl-forge-oci-")
	if err != nil {
		return nil, nil, err
	}
	remove := func() { _ = os.RemoveAll(dir) }
	index, err := unpack(file, dir)
	if err != nil {
		remove()
		return nil, nil, err
	}
	return index, remove, nil
}

// unpack unpacks an OCI archive into a folder, and returns its index. An entry whose
// name leads out of the folder is an error, and links are left out.
func unpack(file, dir string) (v1.ImageIndex, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	r := tar.NewReader(f)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("no OCI archive: %w", err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		if err := writeFile(root, h.Name, r); err != nil {
			return nil, err
		}
	}
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return nil, fmt.Errorf("no OCI archive: %w", err)
	}
	return index, nil
}

// writeFile writes a file below root, with the folders above it.
// os.Root refuses a name that leads out of it.
func writeFile(root *os.Root, name string, r io.Reader) error {
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	f, err := root.Create(name)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	return errors.Join(err, f.Close())
}

// opener returns a function that opens the same bytes as often as it is called: a layer is read
// once for its digest and once when it is written.
func opener(data []byte) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
}
