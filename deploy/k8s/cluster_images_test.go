//go:build cluster

package k8s

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/agent/agenttest"
)

// testImage holds the program of internal/testpod. It is loaded, and never pulled.
const testImage = "pfl-forge/testpod:test"

// claudeImage holds the real Claude Code CLI, as a volume of pods that have none. A team
// puts it into its own image of the workers.
const claudeImage = "pfl-forge/claude:test"

// loaded is the version of our images, once a test has put them into the nodes.
var loaded string

// images puts into the nodes what the tests run, and returns the version of ours: those of
// FORGE_IMAGES, a folder that make images has written, or of the commit that is checked out.
func (c *cluster) images(t *testing.T) string {
	t.Helper()
	if loaded != "" {
		return loaded
	}
	dir := os.Getenv("FORGE_IMAGES")
	if dir == "" {
		source := filepath.Join(t.TempDir(), "source") // a clone: Go does not see the commit in a linked worktree
		command(t, "", "git", "clone", "-q", root(t), source)
		dir = c.build(t, source)
	} else if !filepath.IsAbs(dir) {
		dir = filepath.Join(root(t), dir)
	}
	loaded = c.loadImages(t, dir)
	c.loadArchive(t, c.archive(t, testImage, "testpod", "./internal/testpod"))
	c.loadArchive(t, c.imageOf(t, claudeImage, "claude", agenttest.ClaudeCLI(t)))
	c.loadArchive(t, c.archive(t, "docker.io/library/nats:"+natsVersion(t), "nats-server", "github.com/nats-io/nats-server/v2"))
	return loaded
}

// build makes the images of a checkout, and returns the folder that has them.
func (c *cluster) build(t *testing.T, source string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	base := os.Getenv("IMAGE_BASE")
	if base == "" {
		t.Fatal("give IMAGE_BASE, as make k8s-test does, or FORGE_IMAGES, a folder with images")
	}
	if !strings.Contains(base, "@") && !filepath.IsAbs(base) {
		base = filepath.Join(root(t), base)
	}
	command(t, source, "go", "run", "./deploy/images", "-platforms", "linux/"+c.arch, "-base", base, "-o", dir,
		"runner", "analyzer", "implementer", "reviewer", "reflector", "gateway", "pfl-forge")
	return dir
}

// loadImages puts the images of a folder into the nodes, and returns their version.
func (c *cluster) loadImages(t *testing.T, dir string) (version string) {
	t.Helper()
	archives, err := filepath.Glob(filepath.Join(dir, "*.tar"))
	if err != nil {
		t.Fatal(err)
	}
	for _, archive := range archives {
		name, rest, _ := strings.Cut(filepath.Base(archive), "-")
		if name == "runner" {
			version = strings.TrimSuffix(rest, ".tar")
		}
		if strings.HasPrefix(filepath.Base(archive), "base") {
			continue
		}
		c.loadArchive(t, archive)
	}
	if version == "" {
		t.Fatalf("no image of the runner in %s", dir)
	}
	return version
}

// root returns the folder of the repository, which paths in settings begin at.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// natsVersion returns the version of NATS in the manifests.
func natsVersion(t *testing.T) string {
	t.Helper()
	for _, w := range workloads(build(t, "overlays/single-node")) {
		if version, ok := strings.CutPrefix(w.pod.Spec.Containers[0].Image, "nats:"); ok {
			return version
		}
	}
	t.Fatal("no NATS in the manifests")
	return ""
}

func (c *cluster) loadArchive(t *testing.T, path string) {
	t.Helper()
	abs, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	command(t, "", c.load[0], append(c.load[1:len(c.load):len(c.load)], abs)...)
}

// archive builds a static binary, and writes an image with nothing else.
func (c *cluster) archive(t *testing.T, image, name, pkg string) string {
	t.Helper()
	dir := t.TempDir()
	binary := filepath.Join(dir, name)
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags=-s -w", "-o", binary, pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+c.arch)
	output(t, cmd)
	return c.imageOf(t, image, name, binary)
}

// imageOf writes an image with one program as docker save would. Its user has a
// number, which is what runAsNonRoot asks for.
func (c *cluster) imageOf(t *testing.T, image, name, binary string) string {
	t.Helper()
	program, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	layer := tarOf(t, name, program)
	config, err := json.Marshal(map[string]any{
		"architecture": c.arch, "os": "linux",
		"config": map[string]any{"Entrypoint": []string{"/" + name}, "Env": []string{"PATH=/"}, "User": "65532:65532"},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(layer))}},
	})
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := json.Marshal([]map[string]any{{"Config": "config.json", "RepoTags": []string{image}, "Layers": []string{"layer.tar"}}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "image.tar")
	if err := os.WriteFile(path, tarOf(t, "manifest.json", manifest, "config.json", config, "layer.tar", layer), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// tarOf returns a tar archive of pairs of a name and a content.
func tarOf(t *testing.T, files ...any) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for i := 0; i < len(files); i += 2 {
		content, ok := files[i+1].([]byte)
		if !ok {
			t.Fatalf("%v is no content", files[i+1])
		}
		if err := w.WriteHeader(&tar.Header{Name: fmt.Sprint(files[i]), Mode: 0o755, Size: int64(len(content))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
