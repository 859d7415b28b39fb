package sessions

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// archiveOf returns an archive with a head and entries as they are given.
func archiveOf(t testing.TB, entries ...tar.Header) []byte {
	t.Helper()
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	w := tar.NewWriter(zip)
	if err := addFile(w, headName, []byte(`{"host":"h","session":"s"}`)); err != nil {
		t.Fatal(err)
	}
	for i := range entries {
		entries[i].Mode = 0o600
		if err := w.WriteHeader(&entries[i]); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(make([]byte, entries[i].Size)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// FuzzUnpack: a stored session, which any worker may have written, makes files in its
// own directory and nowhere else, no links, and no more bytes than a session may have.
func FuzzUnpack(f *testing.F) {
	packed, err := pack(saved{Host: "h", Session: "s"}, []file{{"a/b.jsonl", []byte("x")}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(packed)
	f.Add(archiveOf(f, tar.Header{Name: "files/../../out", Size: 1}))
	f.Add(archiveOf(f, tar.Header{Name: "/etc/out", Size: 1}))
	f.Add(archiveOf(f, tar.Header{Name: "files/l", Typeflag: tar.TypeSymlink, Linkname: "../.."}, tar.Header{Name: "files/l/out", Size: 1}))
	f.Add(archiveOf(f, tar.Header{Name: "files/a", Size: 1}, tar.Header{Name: "files/a/b", Size: 1}))
	f.Add([]byte("\x1f\x8b"))
	f.Fuzz(func(t *testing.T, data []byte) {
		around := t.TempDir()
		dir := filepath.Join(around, "state")
		_ = unpack(bytes.NewReader(data), dir, func(saved) error { return nil })
		var size int64
		err := filepath.WalkDir(around, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			if path != around && path != dir && !strings.HasPrefix(path, dir+string(filepath.Separator)) {
				t.Errorf("%s is beside the session", path)
			}
			if !d.IsDir() && !info.Mode().IsRegular() {
				t.Errorf("%s is %s", path, info.Mode())
			}
			if info.Mode().IsRegular() {
				size += info.Size()
			}
			return nil
		})
		if err != nil || size > maxSession {
			t.Errorf("%d bytes, %v", size, err)
		}
	})
}

// TestSessionOfTooManyFiles: empty files take next to nothing of an archive,
// and are bounded all the same.
func TestSessionOfTooManyFiles(t *testing.T) {
	var entries []tar.Header
	for i := range maxFiles + 1 {
		entries = append(entries, tar.Header{Name: fmt.Sprint("files/", i)})
	}
	data := archiveOf(t, entries...)
	dir := filepath.Join(t.TempDir(), "state")
	err := unpack(bytes.NewReader(data), dir, func(saved) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "more than 2000 files") {
		t.Errorf("%d bytes: %v", len(data), err)
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) > maxFiles {
		t.Errorf("%d files, %v", len(list), err)
	}
}
