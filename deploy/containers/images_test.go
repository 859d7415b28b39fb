//go:build containers

package containers

import (
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
