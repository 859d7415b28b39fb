//go:build cluster

package k8s

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// TestClusterUpgrade installs the commit before, rolls to the one that is checked out and
// back again, each by applying the manifests of that commit while changes are under way. Their
// commands run in sandboxes in the workers' pods: with a pod for each, two cores need six minutes.
func TestClusterUpgrade(t *testing.T) {
	c := findCluster(t)
	version := c.images(t)
	source, before := c.imagesBefore(t)
	beside(t, 6)
	in := newSandboxedInstallation(t, c, "pfl-forge-upgrade", version)
	c.installProfile(t, "pfl-forge/implementer:"+version)

	in.install(t, source, before)
	in.submit(t, "rolled", 100)
	in.install(t, root(t), version)
	left := len(in.asked) - in.counts(t)["done"]
	figure(t, "%d of %d intents are under way when the version before is rolled back to", left, len(in.asked))
	if left == 0 {
		t.Error("all were merged before: this shows nothing of the way back")
	}
	in.install(t, source, before)
	in.merged(t)
	in.measured(t)
}

// imagesBefore puts into the nodes the images of the commit that K8S_BEFORE names, by default
// the one before, and returns a clone of it and their version.
func (c *cluster) imagesBefore(t *testing.T) (source, version string) {
	t.Helper()
	source = filepath.Join(t.TempDir(), "before")
	command(t, "", "git", "clone", "-q", root(t), source)
	command(t, source, "git", "checkout", "-q", cmp.Or(os.Getenv("K8S_BEFORE"), "HEAD~1"))
	return source, c.loadImages(t, c.build(t, source))
}

// install applies the manifests of a checkout with its version of the services, and waits
// until all of them are of that version and ready.
func (in *installation) install(t *testing.T, source, version string) {
	t.Helper()
	began, services := time.Now(), 6
	in.version = version
	in.write(t, filepath.Join(source, "deploy", "k8s", "overlays", "single-node"), "", in.sandboxedShop(t))
	wait.Until(t, fmt.Sprintf("all services have version %s", version), func() bool {
		pods := in.pods(t, "")
		for i := range pods {
			image := pods[i].Spec.Containers[0].Image
			if !isReady(&pods[i]) || strings.HasPrefix(image, "pfl-forge/") && !strings.HasSuffix(image, ":"+version) {
				return false
			}
		}
		return len(pods) == services
	})
	figure(t, "version %s is ready %s after it was applied", version, time.Since(began).Round(time.Second))
}
