package main

import (
	"archive/tar"
	"bytes"
	"io"
	"log"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/pfl-forge/pfl-forge/internal/testsize"
)

// commands is an image that needs git.
var commands = program{name: "commands", title: "A program that runs git", module: ".", main: ".", file: "forge-commands", tools: true}

// A base adds its files and its packages; what runs and as whom is ours.
func TestBase(t *testing.T) {
	testsize.OnlyFull(t) // compiles the standard library
	b := newBuilder(t, newRepository(t))
	b.base = newBase(t, "amd64", "arm64")
	if err := b.write(t.Context(), []program{commands}); err != nil {
		t.Fatal(err)
	}
	checkArchive(t, b, commands)
	for _, platform := range b.platforms {
		img := imageOf(t, b, commands, platform)
		_, files := contents(t, img)
		if got := string(files["usr/bin/git"]); got != platform.Architecture {
			t.Errorf("%s: the base is of %q", platform, got)
		}
		want := "root:x:0:0:root:/root:/bin/bash\nforge:x:65532:65532:pfl-forge:/home/forge:/bin/sh\n"
		if diff := cmp.Diff(want, string(files["etc/passwd"])); diff != "" {
			t.Errorf("passwd (-want +got):\n%s", diff)
		}
		if got := string(files["etc/group"]); got != "root:x:0:\nforge:x:65532:\n" {
			t.Errorf("group: %q", got)
		}
		if got := string(files[rootsFile]); got != "the base's" {
			t.Errorf("certificates: %q", got)
		}
		bom := string(readFile(t, b.bom(commands, platform)))
		for purl, want := range map[string]bool{
			"pkg:deb/debian/git@1%3A2.39.5-0%2Bdeb12u3?arch=" + platform.Architecture: true,
			"pkg:deb/debian/removed@": false,
		} {
			if strings.Contains(bom, purl) != want {
				t.Errorf("%s in the SBOM: not %t", purl, want)
			}
		}
	}
}

// A registry's base is the same as an archive's, if it is asked for by its digest.
func TestBaseFromRegistry(t *testing.T) {
	testsize.OnlyFull(t) // compiles the standard library
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	file := newBase(t, "amd64", "arm64")
	archive, done, err := openArchive(file)
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	tag, err := name.NewTag(strings.TrimPrefix(server.URL, "http://") + "/base:1")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.WriteIndex(tag, archive); err != nil {
		t.Fatal(err)
	}
	digest, err := archive.Digest()
	if err != nil {
		t.Fatal(err)
	}
	dir := newRepository(t)
	var archives [][]byte
	for _, base := range []string{file, tag.Context().Digest(digest.String()).String()} {
		b := newBuilder(t, dir)
		b.base = base
		if err := b.write(t.Context(), []program{commands}); err != nil {
			t.Fatal(err)
		}
		archives = append(archives, readFile(t, b.archive(commands)))
	}
	if !bytes.Equal(archives[0], archives[1]) {
		t.Error("the base of a registry gives another image than the same of an archive")
	}
	b := newBuilder(t, dir)
	b.base = tag.String()
	if err := b.write(t.Context(), []program{commands}); err == nil || !strings.Contains(err.Error(), "@sha256:") {
		t.Errorf("a base by a tag: %v", err)
	}
}

func TestBaseThatWillNotDo(t *testing.T) {
	dir := newRepository(t)
	for _, test := range []struct{ base, want string }{
		{"", "-base is missing"},
		{filepath.Join(t.TempDir(), "nowhere.tar"), "no such file"},
		{filepath.Join(dir, "main.go"), "no OCI archive"},
		{newBase(t, "arm64"), "linux/amd64: the base has no image for it"},
		{baseOf(t, map[string][]entry{"amd64": {{name: "bin/sh", mode: 0o755}}}), "the base has no git"},
		{baseOf(t, map[string][]entry{"amd64": {{name: "usr/bin/git", mode: 0o755}}}), "the base has no sh"},
	} {
		b := newBuilder(t, dir)
		b.base = test.base
		if err := b.write(t.Context(), []program{commands}); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("base %q: %v, want %q", test.base, err, test.want)
		}
	}
}

// newBase makes a base from root file systems with stand-ins for what is asked of one.
func newBase(t *testing.T, archs ...string) string {
	t.Helper()
	roots := map[string][]entry{}
	for _, arch := range archs {
		roots[arch] = []entry{
			{name: "usr/bin/git", mode: 0o755, data: []byte(arch)},
			{name: "usr/bin/sh", mode: 0o755},
			{name: "etc/passwd", mode: 0o644, data: []byte("root:x:0:0:root:/root:/bin/bash\n")},
			{name: "etc/group", mode: 0o644, data: []byte("root:x:0:")},
			{name: rootsFile, mode: 0o644, data: []byte("the base's")},
			{name: dpkgStatus, mode: 0o644, data: []byte("Package: git\nStatus: install ok installed\nArchitecture: " + arch +
				"\nVersion: 1:2.39.5-0+deb12u3\nDescription: fast\n .\n more\n\n" +
				"Package: removed\nStatus: deinstall ok config-files\nArchitecture: all\nVersion: 1\n")},
		}
	}
	return baseOf(t, roots)
}

func baseOf(t *testing.T, roots map[string][]entry) string {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "base.tar")
	args := []string{"-o", file}
	for arch, entries := range roots {
		layer, err := newLayer(entries, commitTime)
		if err != nil {
			t.Fatal(err)
		}
		r, err := layer.Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		writeFiles(t, dir, map[string]string{arch + ".tar": string(data)})
		args = append(args, arch+"="+filepath.Join(dir, arch+".tar"))
	}
	if err := runRootfs(t.Context(), args, io.Discard); err != nil {
		t.Fatal(err)
	}
	return file
}

// contents returns the headers of an image's last layer, and all files of the image.
func contents(t *testing.T, img v1.Image) ([]*tar.Header, map[string][]byte) {
	t.Helper()
	layers, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	var headers []*tar.Header
	for _, layer := range layers {
		r, err := layer.Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		headers = readTar(t, r, files)
		r.Close()
	}
	return headers, files
}
