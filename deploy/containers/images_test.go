//go:build containers

package containers

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/testcontainers/testcontainers-go"

	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// programs are the names of our images.
var programs = []string{"pfl-forge", "runner", "analyzer", "implementer", "reviewer", "reflector", "gateway"}

// TestImages runs every image as a runtime does that grants nothing.
func TestImages(t *testing.T) {
	d := connect(t)
	for _, name := range programs {
		t.Run(name, func(t *testing.T) {
			image, err := d.client.ImageInspect(wait.Context(t), d.image(name))
			if err != nil {
				t.Fatal(err)
			}
			if image.Config.User != user {
				t.Errorf("it runs as %q", image.Config.User)
			}
			code, out := d.run(t, testcontainers.ContainerRequest{Image: d.image(name), Cmd: []string{"--help"}})
			if code != 0 || !strings.Contains(out, "--tls-ca") {
				t.Errorf("--help: exit code %d, %s", code, out)
			}
			began := time.Now()
			version := "--version"
			if name == "pfl-forge" {
				version = "version" // a command, which can print it as JSON
			}
			code, out = d.run(t, testcontainers.ContainerRequest{Image: d.image(name), Cmd: []string{version}})
			const short = 7
			commit := image.Config.Labels["org.opencontainers.image.revision"]
			if len(commit) < short || code != 0 || !strings.Contains(out, commit[:short]) {
				t.Errorf("%s: exit code %d, %q, and the image is of commit %q", version, code, out, commit)
			}
			t.Logf("%s: %d MB, began and ended after %s", strings.TrimSpace(out), image.Size>>20, since(began))
			code, out = d.run(t, testcontainers.ContainerRequest{Image: d.image(name), Cmd: []string{"--no-such-flag"}})
			if code == 0 {
				t.Errorf("an unknown flag: exit code 0, %q", out)
			}
		})
	}
}

// TestDockerfileExample builds the Dockerfile of deploy/images by which a team puts
// Node.js and an agent CLI on an image of ours: both are there, and all that a cluster
// asks of the image stays. Stand-ins take their place, since nothing is pulled here.
func TestDockerfileExample(t *testing.T) {
	d := connect(t)
	text := read(t, "..", "images", "Dockerfile.example")
	from := regexp.MustCompile(`(?m)^COPY --from=docker\.io/library/(node:\S+) /usr/local/ /usr/local/$`).FindStringSubmatch(text)
	const ours = "FROM pfl-forge/implementer:VERSION\n"
	if from == nil || !strings.HasPrefix(text, ours) || strings.Count(text, "\n") != 3 {
		t.Fatalf("the example is\n%s", text)
	}
	folder := func(files map[string]string) string {
		dir := t.TempDir()
		for name, content := range files {
			path := filepath.Join(dir, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o755)); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	d.buildFolder(t, from[1], folder(map[string]string{
		"Dockerfile": "FROM scratch\nCOPY node /usr/local/bin/node\n", "node": "#!/bin/sh\necho node runs $0 $*\n",
	}))
	const extended = "pfl-forge/extended:test"
	d.buildFolder(t, extended, folder(map[string]string{
		"Dockerfile": strings.Replace(text, "VERSION", d.version, 1), "agent/bin/claude": "#!/usr/bin/env node\n",
	}))
	config := func(image string) (user string, entry, env []string) {
		found, err := d.client.ImageInspect(wait.Context(t), image)
		if err != nil {
			t.Fatal(err)
		}
		return found.Config.User, found.Config.Entrypoint, found.Config.Env
	}
	wasUser, wasEntry, wasEnv := config(d.image("implementer"))
	isUser, isEntry, isEnv := config(extended)
	if isUser != wasUser || !slices.Equal(isEntry, wasEntry) || !slices.Equal(isEnv, wasEnv) {
		t.Errorf("it runs %q as %q with %q, ours %q as %q with %q", isEntry, isUser, isEnv, wasEntry, wasUser, wasEnv)
	}
	request := testcontainers.ContainerRequest{Image: extended, Entrypoint: []string{"sh", "-c", "id -u && git --version && claude one"}}
	code, out := d.run(t, request)
	if want := "node runs /usr/local/bin/node /usr/local/bin/claude one"; code != 0 || !strings.HasPrefix(out, "65532\n") || !strings.Contains(out, want) {
		t.Errorf("exit code %d: %s", code, out)
	}
	if code, out := d.run(t, testcontainers.ContainerRequest{Image: extended, Cmd: []string{"--help"}}); code != 0 || !strings.Contains(out, "--tls-ca") {
		t.Errorf("--help: exit code %d, %s", code, out)
	}
}

// confined checks from the inside what a runtime has granted to a container with a shell.
func (d *docker) confined(t *testing.T, c testcontainers.Container) {
	t.Helper()
	const script = `id -u; id -g; grep -E '^(Cap|NoNew)' /proc/1/status
	touch /x 2>&1; touch /usr/x 2>&1; touch /state/x && rm /state/x && echo kept`
	code, out, err := d.exec(wait.Context(t), c, "sh", "-c", script)
	want := []string{
		"65532\n65532\n", "CapEff:\t0000000000000000", "CapBnd:\t0000000000000000", "NoNewPrivs:\t1",
		"'/x': Read-only", "'/usr/x': Read-only", "kept",
	}
	for _, w := range want {
		if err != nil || code != 0 || !strings.Contains(out, w) {
			t.Errorf("%q is missing: exit code %d, %v\n%s", w, code, err, out)
		}
	}
}
