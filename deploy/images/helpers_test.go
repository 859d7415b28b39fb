package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

var commitTime = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// newRepository makes a repository with a program of one commit, v1.2.3.
func newRepository(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "lib"), 0o755); err != nil {
		t.Fatal(err)
	}
	writeFiles(t, dir, map[string]string{
		"go.mod":     "module example.com/hello\n\ngo 1.26.0\n\nrequire example.com/lib v0.0.0\n\nreplace example.com/lib => ./lib\n",
		"main.go":    "package main\n\nimport \"example.com/lib\"\n\nfunc main() { println(lib.One) }\n",
		"lib/go.mod": "module example.com/lib\n\ngo 1.26.0\n",
		"lib/lib.go": "package lib\n\nconst One = 1\n",
	})
	git(t, dir, "init", "-q")
	git(t, dir, "add", ".")
	git(t, dir, "-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-q", "-m", "first")
	git(t, dir, "-c", "user.name=t", "-c", "user.email=t@example.com", "tag", "-m", "first", "v1.2.3")
	return dir
}

// clone returns another folder with the same commit.
func clone(t *testing.T, origin string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "clone")
	out, err := exec.CommandContext(t.Context(), "git", "clone", "-q", "--no-hardlinks", origin, dir).CombinedOutput()
	if err != nil {
		t.Fatalf("git clone: %v\n%s", err, out)
	}
	return dir
}

func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_COMMITTER_DATE="+commitTime.Format(time.RFC3339))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

func newBuilder(t *testing.T, dir string) *builder {
	t.Helper()
	src, err := openSource(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return &builder{
		source: src, out: t.TempDir(), log: t.Output(),
		platforms: []v1.Platform{{OS: "linux", Architecture: "amd64"}, {OS: "linux", Architecture: "arm64"}},
	}
}

func (b *builder) archive(p program) string {
	return filepath.Join(b.out, p.name+"-"+b.source.version+".tar")
}

func (b *builder) bom(p program, platform v1.Platform) string {
	return filepath.Join(b.out, fmt.Sprintf("%s-%s-%s.spdx.json", p.name, b.source.version, platform.Architecture))
}

func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func readFile(t *testing.T, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// readTar adds the regular files of a tar to a map, and returns all headers.
func readTar(t *testing.T, from io.Reader, files map[string][]byte) []*tar.Header {
	t.Helper()
	var headers []*tar.Header
	r := tar.NewReader(from)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return headers
		}
		if err != nil {
			t.Fatal(err)
		}
		headers = append(headers, h)
		if h.Typeflag == tar.TypeReg {
			if files[h.Name], err = io.ReadAll(r); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func archiveFiles(t *testing.T, file string) []string {
	t.Helper()
	var names []string
	for _, h := range readTar(t, bytes.NewReader(readFile(t, file)), map[string][]byte{}) {
		names = append(names, h.Name)
	}
	return names
}

func readArchived(t *testing.T, file, name string) []byte {
	t.Helper()
	files := map[string][]byte{}
	readTar(t, bytes.NewReader(readFile(t, file)), files)
	return files[name]
}
