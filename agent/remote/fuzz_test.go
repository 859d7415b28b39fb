package remote

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// FuzzUnpack: whatever an archive of a pod holds, nothing is written outside of
// the directories, by no name and through no link.
func FuzzUnpack(f *testing.F) {
	archive := func(headers ...*tar.Header) []byte {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		for _, h := range headers {
			if err := w.WriteHeader(h); err != nil {
				f.Fatal(err)
			}
			if _, err := w.Write(make([]byte, h.Size)); err != nil {
				f.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			f.Fatal(err)
		}
		return b.Bytes()
	}
	f.Add(archive(&tar.Header{Name: "0/a", Typeflag: tar.TypeReg, Size: 3, Mode: 0o444}))
	f.Add(archive(&tar.Header{Name: "0/l", Typeflag: tar.TypeSymlink, Linkname: ".."}, &tar.Header{Name: "0/l/taken", Typeflag: tar.TypeReg, Size: 1}))
	f.Add(archive(&tar.Header{Name: "0/../taken", Typeflag: tar.TypeReg}, &tar.Header{Name: "1/x", Typeflag: tar.TypeReg}))
	f.Add(archive(&tar.Header{Name: "0/d", Typeflag: tar.TypeDir, Mode: 0}, &tar.Header{Name: "0/d/e", Typeflag: tar.TypeReg}))
	base := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<16 {
			return
		}
		outer, err := os.MkdirTemp(base, "") //nolint:usetesting // one for each input
		if err != nil {
			t.Fatal(err)
		}
		defer removeAll(outer)
		inner := filepath.Join(outer, "inner")
		if err := os.Mkdir(inner, 0o755); err != nil {
			t.Fatal(err)
		}
		_ = unpack(bytes.NewReader(data), []string{inner})
		found, err := os.ReadDir(outer)
		if err != nil || len(found) != 1 || found[0].Name() != "inner" {
			t.Errorf("outside there is %v, %v", found, err)
		}
	})
}

// FuzzFrame: a frame that is read is written in the same bytes, and no more than it says is taken.
func FuzzFrame(f *testing.F) {
	f.Add([]byte("o\x00\x00\x00\x01x"))
	f.Add([]byte("e\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 4 && data[1] < 5 && data[2] > 0 {
			return // it would only take time: a buffer of many MiB
		}
		in := bytes.NewReader(data)
		k, payload, err := readFrame(in)
		if err != nil {
			return
		}
		var out bytes.Buffer
		if err := writeFrame(&out, k, payload); err != nil {
			t.Fatal(err)
		}
		rest, _ := io.ReadAll(in)
		if again := append(out.Bytes(), rest...); !bytes.Equal(again, data) {
			t.Errorf("%q became %q", data, again)
		}
	})
}
