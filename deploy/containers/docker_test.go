//go:build containers

package containers

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"

	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// user is the numeric id that our images run as.
const user = "65532:65532"

// docker is a daemon, and the images that the tests put into it.
type docker struct {
	provider *testcontainers.DockerProvider
	client   client.APIClient
	// version is that of our images.
	version string
	// older and newer are versions of nats-server.
	older, newer string
}

// connect returns the daemon, with all images loaded. When the test has ended, whether it
// failed or not, nothing of it may be left there.
func connect(t *testing.T) *docker {
	t.Helper()
	// Its image would have to be pulled; everything is removed by the test that made it.
	t.Setenv("TESTCONTAINERS_RYUK_DISABLED", "true")
	provider, err := testcontainers.NewDockerProvider()
	if err != nil {
		t.Fatalf("%v: make test-containers starts a daemon", err)
	}
	t.Cleanup(func() { _ = provider.Close() })
	d := &docker{provider: provider, client: provider.Client()}
	before := d.everything(t)
	t.Cleanup(func() {
		if after := d.everything(t); !slices.Equal(before, after) {
			t.Errorf("the test left something:\nbefore %q\nafter  %q", before, after)
		}
	})
	d.loadAll(t)
	return d
}

// everything lists what a daemon holds.
func (d *docker) everything(t *testing.T) []string {
	t.Helper()
	ctx := wait.Context(t)
	var names []string
	containers, err := d.client.ContainerList(ctx, client.ContainerListOptions{All: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range containers.Items {
		names = append(names, fmt.Sprint("container ", c.Names, c.ID))
	}
	networks, err := d.client.NetworkList(ctx, client.NetworkListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range networks.Items {
		names = append(names, "network "+n.Name)
	}
	volumes, err := d.client.VolumeList(ctx, client.VolumeListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range volumes.Items {
		names = append(names, "volume "+v.Name)
	}
	images, err := d.client.ImageList(ctx, client.ImageListOptions{All: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range images.Items {
		names = append(names, fmt.Sprint("image ", i.RepoTags, i.ID))
	}
	slices.Sort(names)
	return names
}

// loadAll loads what deploy/containers/prepare has written.
func (d *docker) loadAll(t *testing.T) {
	t.Helper()
	dir := os.Getenv("FORGE_CONTAINERS")
	if dir == "" {
		t.Fatal("give FORGE_CONTAINERS, a folder that deploy/containers/prepare has written, as make test-containers does")
	}
	for _, name := range programs {
		archives, err := filepath.Glob(filepath.Join(dir, name+"-*.tar"))
		if err != nil || len(archives) != 1 {
			t.Fatalf("archives of %s in %s: %q, %v", name, dir, archives, err)
		}
		d.version = strings.TrimSuffix(strings.TrimPrefix(filepath.Base(archives[0]), name+"-"), ".tar")
		d.load(t, archives[0], d.image(name))
	}
	data, err := os.ReadFile(filepath.Join(dir, "nats-versions"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscan(string(data), &d.older, &d.newer); err != nil || d.older == d.newer {
		t.Fatalf("versions of nats-server: %q, %v", data, err)
	}
	for _, version := range []string{d.older, d.newer} {
		d.build(t, d.nats(version), "nats-server", filepath.Join(dir, "nats-server-"+version))
	}
	d.build(t, testpod, "testpod", filepath.Join(dir, "testpod"))
}

// testpod is a git server and another system; deploy/k8s's tests have it, too.
const testpod = "pfl-forge/testpod:test"

func (d *docker) image(program string) string { return "pfl-forge/" + program + ":" + d.version }

func (d *docker) nats(version string) string { return "pfl-forge/test-nats:" + version }

// build makes an image of one static binary and an empty folder /data, from nothing.
func (d *docker) build(t *testing.T, image, name, binary string) {
	t.Helper()
	dir := t.TempDir()
	data, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	dockerfile := fmt.Sprintf("FROM scratch\nCOPY %[1]s /\nCOPY --chown=%[2]s data /data\nENV PATH=/\nUSER %[2]s\nENTRYPOINT [\"/%[1]s\"]\n", name, user)
	err = errors.Join(
		os.WriteFile(filepath.Join(dir, name), data, 0o755),
		os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte(dockerfile), 0o600),
		os.Mkdir(filepath.Join(dir, "data"), 0o700),
	)
	if err != nil {
		t.Fatal(err)
	}
	d.buildFolder(t, image, dir)
}

// buildFolder makes an image of a folder with a Dockerfile.
func (d *docker) buildFolder(t *testing.T, image, dir string) {
	t.Helper()
	repo, tag, _ := strings.Cut(image, ":")
	request := testcontainers.ContainerRequest{FromDockerfile: testcontainers.FromDockerfile{Context: dir, Repo: repo, Tag: tag, KeepImage: true}}
	t.Cleanup(func() { d.removeImage(t, image) })
	if _, err := d.provider.BuildImage(wait.Context(t), &request); err != nil {
		t.Fatalf("%s: %v", image, err)
	}
}

// load loads an OCI archive of one image. Daemons before version 25 do not know OCI
// layouts, so it gets the list of layers that docker save writes, too.
func (d *docker) load(t *testing.T, archive, image string) {
	t.Helper()
	t.Cleanup(func() { d.removeImage(t, image) })
	file, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	manifest := dockerManifest(t, file, image)
	r, w := io.Pipe()
	go func() {
		out := tar.NewWriter(w)
		_, err := file.Seek(0, io.SeekStart)
		in := tar.NewReader(file)
		for err == nil {
			var header *tar.Header
			if header, err = in.Next(); err == nil && header.Name != "oci-layout" && header.Name != "index.json" {
				err = out.WriteHeader(header)
				if err == nil {
					_, err = io.Copy(out, in)
				}
			}
		}
		if errors.Is(err, io.EOF) {
			header := &tar.Header{Name: "manifest.json", Mode: 0o644, Size: int64(len(manifest))}
			err = errors.Join(out.WriteHeader(header), writeAll(out, manifest), out.Close())
		}
		_ = file.Close()
		_ = w.CloseWithError(err)
	}()
	result, err := d.client.ImageLoad(wait.Context(t), r)
	if err != nil {
		t.Fatalf("%s: %v", image, err)
	}
	said, err := io.ReadAll(result)
	if err != nil || !strings.Contains(string(said), image) {
		t.Fatalf("load %s: %s, %v", image, said, err)
	}
	_ = result.Close()
}

func writeAll(w io.Writer, data []byte) error {
	_, err := w.Write(data)
	return err
}

// dockerManifest returns the list of layers of the one image in an OCI archive.
func dockerManifest(t *testing.T, archive io.Reader, image string) []byte {
	t.Helper()
	type descriptor struct {
		Digest string `json:"digest"`
	}
	type document struct {
		Manifests []descriptor `json:"manifests"`
		Config    descriptor   `json:"config"`
		Layers    []descriptor `json:"layers"`
	}
	documents, in := map[string]document{}, tar.NewReader(archive)
	for {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		const enough = 1 << 20
		if header.Size > enough {
			continue
		}
		data, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		var doc document
		if json.Unmarshal(data, &doc) == nil {
			documents[header.Name] = doc
		}
	}
	path := func(of descriptor) string { return "blobs/" + strings.Replace(of.Digest, ":", "/", 1) }
	top := documents["index.json"]
	for len(top.Manifests) > 0 { // of one platform, the first entry is the image; what follows refers to it
		top = documents[path(top.Manifests[0])]
	}
	if len(top.Layers) == 0 {
		t.Fatalf("%s has no layers", image)
	}
	var layers []string
	for _, l := range top.Layers {
		layers = append(layers, path(l))
	}
	data, err := json.Marshal([]map[string]any{{"Config": path(top.Config), "RepoTags": []string{image}, "Layers": layers}})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func (d *docker) removeImage(t *testing.T, image string) {
	t.Helper()
	_, err := d.client.ImageRemove(wait.Context(t), image, client.ImageRemoveOptions{Force: true, PruneChildren: true})
	if err != nil {
		t.Errorf("%s: %v", image, err)
	}
}

// start starts a container as a cluster that grants nothing would: root cannot be written
// to, no capabilities, no way to get any. It goes when the test ends, with its volumes.
func (d *docker) start(t *testing.T, request testcontainers.ContainerRequest, binds ...string) testcontainers.Container {
	t.Helper()
	request.HostConfigModifier = func(h *container.HostConfig) {
		h.ReadonlyRootfs, h.CapDrop, h.SecurityOpt = true, []string{"ALL"}, []string{"no-new-privileges"}
		h.Binds = append(h.Binds, binds...)
	}
	c, err := testcontainers.GenericContainer(wait.Context(t), testcontainers.GenericContainerRequest{
		ContainerRequest: request, Started: true, Logger: discard{},
	})
	testcontainers.CleanupContainer(t, c, testcontainers.StopTimeout(0))
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", request.Image, request.Cmd, err, d.logs(t, c))
	}
	t.Cleanup(func() {
		if state, err := c.State(wait.Context(t)); err == nil && t.Failed() {
			t.Logf("%s %v, %s, exit code %d:\n%s", request.Image, request.NetworkAliases, state.Status, state.ExitCode, tail(d.logs(t, c)))
		}
	})
	return c
}

// run runs a container to its end and returns its exit code and output.
func (d *docker) run(t *testing.T, request testcontainers.ContainerRequest, binds ...string) (int, string) {
	t.Helper()
	c := d.start(t, request, binds...)
	code := d.ended(t, c)
	out := d.logs(t, c)
	if err := testcontainers.TerminateContainer(c, testcontainers.StopTimeout(0)); err != nil {
		t.Error(err)
	}
	return code, out
}

// ended waits for the end of a container and returns its exit code.
func (d *docker) ended(t *testing.T, c testcontainers.Container) int {
	t.Helper()
	var code int
	wait.Until(t, "the container has ended", func() bool {
		state, err := c.State(wait.Context(t))
		if err != nil {
			t.Fatal(err)
		}
		code = state.ExitCode
		return !state.Running
	})
	return code
}

// kill ends a container's program at once, as docker kill does.
func (d *docker) kill(t *testing.T, c testcontainers.Container) {
	t.Helper()
	if _, err := d.client.ContainerKill(wait.Context(t), c.GetContainerID(), client.ContainerKillOptions{Signal: "KILL"}); err != nil {
		t.Fatal(err)
	}
	d.ended(t, c)
}

// logs returns everything that a container has written.
func (d *docker) logs(t *testing.T, c testcontainers.Container) string {
	t.Helper()
	r, err := d.client.ContainerLogs(wait.Context(t), c.GetContainerID(), client.ContainerLogsOptions{ShowStdout: true, ShowStderr: true})
	if err != nil {
		return err.Error()
	}
	defer func() { _ = r.Close() }()
	var b strings.Builder
	if _, err := stdcopy.StdCopy(&b, &b, r); err != nil {
		return err.Error()
	}
	return b.String()
}

func tail(text string) string {
	lines := strings.Split(text, "\n")
	return strings.Join(lines[max(0, len(lines)-25):], "\n")
}

// exec runs a command in a container, and returns its exit code and output.
func (d *docker) exec(ctx context.Context, c testcontainers.Container, args ...string) (int, string, error) {
	code, r, err := c.Exec(ctx, args)
	if err != nil {
		return 0, "", err
	}
	var b strings.Builder
	if _, err := stdcopy.StdCopy(&b, &b, r); err != nil {
		return 0, "", err
	}
	return code, b.String(), nil
}

// since returns how long ago it was, for a log.
func since(began time.Time) time.Duration { return time.Since(began).Round(time.Millisecond) }

// discard takes testcontainers' own notes, which are not about the test.
type discard struct{}

// Printf does nothing.
func (discard) Printf(string, ...any) {}
