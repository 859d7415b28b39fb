package main

import (
	"bytes"
	"debug/elf"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/pfl-forge/pfl-forge/internal/testsize"
)

// hello is an image without a base, of the program of newRepository.
var hello = program{name: "hello", title: "A program that greets", module: ".", main: ".", file: "hello"}

// What is written is read back by others' code, and is what a cluster may demand.
func TestArchive(t *testing.T) {
	testsize.OnlyFull(t) // compiles the standard library
	b := newBuilder(t, newRepository(t))
	if err := b.write(t.Context(), []program{hello}); err != nil {
		t.Fatal(err)
	}
	checkArchive(t, b, hello)
	var names []string
	for _, f := range archiveFiles(t, b.archive(hello)) {
		if !strings.HasPrefix(f, "blobs/sha256/") {
			names = append(names, f)
		}
	}
	if diff := cmp.Diff([]string{"index.json", "oci-layout"}, names); diff != "" {
		t.Errorf("files beside the blobs (-want +got):\n%s", diff)
	}
	want := []string{
		"etc/", "etc/group", "etc/passwd", "etc/ssl/", "etc/ssl/certs/", "etc/ssl/certs/ca-certificates.crt",
		"home/", "home/forge/", "state/", "tmp/", "usr/", "usr/bin/", "usr/bin/hello",
	}
	for _, platform := range b.platforms {
		headers, files := contents(t, imageOf(t, b, hello, platform))
		var got []string
		for _, h := range headers {
			got = append(got, h.Name)
			if !h.ModTime.Equal(b.source.time) {
				t.Errorf("%s is of %s, the commit of %s", h.Name, h.ModTime, b.source.time)
			}
			if owned := h.Uid == user && h.Gid == user; owned != (h.Name == "state/" || h.Name == "home/forge/") {
				t.Errorf("%s belongs to %d:%d", h.Name, h.Uid, h.Gid)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: files (-want +got):\n%s", platform, diff)
		}
		if n := strings.Count(string(files[rootsFile]), "BEGIN CERTIFICATE"); n < 100 {
			t.Errorf("%d certificate authorities", n)
		}
	}
}

// The same commit gives the same bytes, wherever and whenever it is built.
func TestSameCommitSameArchive(t *testing.T) {
	testsize.OnlyFull(t) // compiles the standard library
	origin := newRepository(t)
	var archives, boms [][]byte
	for range 2 {
		b := newBuilder(t, clone(t, origin))
		if err := b.write(t.Context(), []program{hello}); err != nil {
			t.Fatal(err)
		}
		archives = append(archives, readFile(t, b.archive(hello)))
		boms = append(boms, readFile(t, b.bom(hello, b.platforms[0])))
	}
	if !bytes.Equal(archives[0], archives[1]) {
		t.Error("two builds of one commit give different archives")
	}
	if !bytes.Equal(boms[0], boms[1]) {
		t.Error("two builds of one commit give different SBOMs")
	}
}

// Every image of the product, of the commit that is checked out. Those for
// amd64 are built and run by make test-containers.
func TestProduct(t *testing.T) {
	testsize.OnlyFull(t)
	arm := []v1.Platform{{OS: "linux", Architecture: "arm64"}}
	b := newBuilder(t, clone(t, filepath.Join("..", "..")))
	b.base, b.platforms = newBase(t, "amd64", "arm64"), arm
	if err := b.write(t.Context(), programs); err != nil {
		t.Fatal(err)
	}
	for _, p := range programs {
		checkArchive(t, b, p, validate.Fast)
	}
	again := newBuilder(t, clone(t, b.source.root))
	again.platforms = arm
	runner := programs[slices.IndexFunc(programs, func(p program) bool { return p.name == "runner" })]
	if err := again.write(t.Context(), []program{runner}); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(readFile(t, b.archive(runner)), readFile(t, again.archive(runner))) {
		t.Error("two builds of one commit give different archives")
	}
}

// An image whose version is another one tomorrow is not made.
func TestVersionIsOfOneCommit(t *testing.T) {
	for _, version := range []string{"latest", "", "a b", "v1+2", strings.Repeat("x", 129)} {
		b := newBuilder(t, newRepository(t))
		b.source.version = version
		if err := b.write(t.Context(), []program{hello}); err == nil || !strings.Contains(err.Error(), "version ") {
			t.Errorf("version %q: %v", version, err)
		}
		if left, _ := os.ReadDir(b.out); len(left) > 0 {
			t.Errorf("version %q: %s was written", version, left)
		}
	}
}

// Uncommitted changes are in the version.
func TestDirty(t *testing.T) {
	dir := newRepository(t)
	writeFiles(t, dir, map[string]string{"main.go": "package main\n\nfunc main() { println(2) }\n"})
	src, err := openSource(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if src.version != "v1.2.3-dirty" {
		t.Errorf("the version is %q", src.version)
	}
}

// A binary that cannot tell its commit gets no image.
func TestCommitIsInTheBinary(t *testing.T) {
	testsize.OnlyFull(t) // compiles the standard library
	b := newBuilder(t, newRepository(t))
	_, info, err := b.source.build(t.Context(), hello, b.platforms[0])
	if err != nil {
		t.Fatal(err)
	}
	if got := setting(info, "vcs.revision"); got != b.source.revision || setting(info, "vcs.modified") != "false" || info.Main.Version != "v1.2.3" {
		t.Errorf("commit %q, version %s", got, info.Main.Version)
	}
	b.source.revision = strings.Repeat("0", 40) // as in a linked worktree, which Go may not look into
	if _, _, err := b.source.build(t.Context(), hello, b.platforms[0]); err == nil || !strings.Contains(err.Error(), "in a clone") {
		t.Errorf("another commit: %v", err)
	}
}

func TestChoose(t *testing.T) {
	if got, err := choose(nil); err != nil || len(got) != len(programs) {
		t.Errorf("by default %v, %v", got, err)
	}
	if _, err := choose([]string{"runer"}); err == nil || !strings.Contains(err.Error(), "runner") {
		t.Errorf("a misspelt name: %v", err)
	}
	for _, text := range []string{"windows/amd64", "linux", "linux/arm/v7", ""} {
		if got, err := parsePlatforms(text); err == nil {
			t.Errorf("platform %q: %v", text, got)
		}
	}
}

// A main has an image, and one that opens repositories has a base with git.
func TestPrograms(t *testing.T) {
	const root = "../.."
	mains, err := filepath.Glob(filepath.Join(root, "services", "*", "cmd", "*"))
	if err != nil {
		t.Fatal(err)
	}
	mains = append(mains, filepath.Join(root, "cmd", "pfl-forge"))
	var got []string
	for _, p := range programs {
		dir := filepath.Join(root, p.module, p.main)
		got = append(got, dir)
		backends := strings.Contains(string(readFile(t, filepath.Join(dir, "main.go"))), `/jobs/backends"`)
		if backends != p.tools {
			t.Errorf("%s: opens repositories %t, has a base with git %t", p.name, backends, p.tools)
		}
	}
	slices.Sort(mains)
	slices.Sort(got)
	if diff := cmp.Diff(mains, got); diff != "" {
		t.Errorf("mains and their images (-mains +images):\n%s", diff)
	}
}

// checkArchive reads an archive back: what a registry and a cluster look at, and that
// the SBOM tells what is in the binary.
func checkArchive(t *testing.T, b *builder, p program, how ...validate.Option) {
	t.Helper()
	archive, done, err := openArchive(b.archive(p))
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	if err := validate.Index(archive, how...); err != nil {
		t.Errorf("%s: %v", p.name, err)
	}
	top, err := archive.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if len(top.Manifests) != 1 {
		t.Fatalf("%s: the archive holds %d images, which podman does not load", p.name, len(top.Manifests))
	}
	index, err := archive.ImageIndex(top.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if want := 2 * len(b.platforms); len(manifest.Manifests) != want {
		t.Fatalf("%s: %d manifests instead of %d", p.name, len(manifest.Manifests), want)
	}
	ref := "pfl-forge/" + p.name + ":" + b.source.version
	want := map[string]string{"org.opencontainers.image.ref.name": ref, "io.containerd.image.name": "docker.io/" + ref}
	if diff := cmp.Diff(want, top.Manifests[0].Annotations); diff != "" {
		t.Errorf("%s: annotations (-want +got):\n%s", p.name, diff)
	}
	for i, platform := range b.platforms {
		img, err := find(index, platform)
		if err != nil {
			t.Fatal(err)
		}
		checkConfig(t, b, p, platform, img)
		binary := binaryOf(t, p, img)
		checkStatic(t, p, platform, binary)
		bom := readFile(t, b.bom(p, platform))
		checkSBOM(t, b, bom, binary)
		checkReferrer(t, index, manifest.Manifests[len(b.platforms)+i], img, bom)
		if got := manifest.Manifests[i].Platform; got == nil || !got.Equals(platform) {
			t.Errorf("%s: the image for %s is said to be for %s", p.name, platform, got)
		}
	}
	if strings.Contains(string(readArchived(t, b.archive(p), "index.json")), "latest") {
		t.Errorf("%s: index.json names latest", p.name)
	}
}

func checkConfig(t *testing.T, b *builder, p program, platform v1.Platform, img v1.Image) {
	t.Helper()
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.OS != platform.OS || config.Architecture != platform.Architecture || !config.Created.Equal(b.source.time) {
		t.Errorf("%s %s: the image is for %s/%s, of %s", p.name, platform, config.OS, config.Architecture, config.Created)
	}
	c := config.Config
	if !regexp.MustCompile(`^[1-9]\d*:[1-9]\d*$`).MatchString(c.User) {
		t.Errorf("%s: runs as %q: a cluster can only see that a number is not root", p.name, c.User)
	}
	if diff := cmp.Diff([]string{"/usr/bin/" + p.file}, c.Entrypoint); diff != "" || len(c.Cmd) > 0 {
		t.Errorf("%s: entry point (-want +got):\n%s%v", p.name, diff, c.Cmd)
	}
	if diff := cmp.Diff(map[string]struct{}{"/state": {}, "/tmp": {}}, c.Volumes); diff != "" {
		t.Errorf("%s: volumes (-want +got):\n%s", p.name, diff)
	}
	for key, value := range b.labels(p) {
		if value == "" || c.Labels[key] != value {
			t.Errorf("%s: label %s is %q", p.name, key, c.Labels[key])
		}
	}
	for _, key := range []string{"title", "source", "revision", "version", "licenses"} {
		if c.Labels["org.opencontainers.image."+key] == "" {
			t.Errorf("%s: no label %s", p.name, key)
		}
	}
}

// checkStatic looks for what a dynamic linker would need.
func checkStatic(t *testing.T, p program, platform v1.Platform, binary []byte) {
	t.Helper()
	f, err := elf.NewFile(bytes.NewReader(binary))
	if err != nil {
		t.Fatal(err)
	}
	machine := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[platform.Architecture]
	if f.Machine != machine {
		t.Errorf("%s %s: a binary for %s", p.name, platform, f.Machine)
	}
	for _, prog := range f.Progs {
		if prog.Type == elf.PT_INTERP || prog.Type == elf.PT_DYNAMIC {
			t.Errorf("%s %s: not static: it has %s", p.name, platform, prog.Type)
		}
	}
}

func binaryOf(t *testing.T, p program, img v1.Image) []byte {
	t.Helper()
	_, files := contents(t, img)
	return files["usr/bin/"+p.file]
}

func imageOf(t *testing.T, b *builder, p program, platform v1.Platform) v1.Image {
	t.Helper()
	archive, done, err := openArchive(b.archive(p))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(done)
	img, err := find(archive, platform)
	if err != nil {
		t.Fatal(err)
	}
	return img
}
