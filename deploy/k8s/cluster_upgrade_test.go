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
	beside(t, 7)
	in := newSandboxedInstallation(t, c, "pfl-forge-upgrade", version)
	c.installProfile(t, "pfl-forge/implementer:"+version)

	in.install(t, source, before)
	in.submit(t, "rolled", 100)
	in.upgrade(t, version)
	left := len(in.asked) - in.counts(t)["done"]
	figure(t, "%d of %d intents are under way when the version before is rolled back to", left, len(in.asked))
	if left == 0 {
		t.Error("all were merged before: this shows nothing of the way back")
	}
	in.install(t, source, before)
	in.merged(t)
	in.measured(t)
}

// upgrade rolls to the commit that is checked out by the commands of the guide: permissions first,
// as a newer version may need others, then a look at what will change, and all of it at once.
func (in *installation) upgrade(t *testing.T, version string) {
	t.Helper()
	h, sh, began := newHandbook(t), newTerminal(t, in.kubectlScript(t)), time.Now()
	in.version = version
	dir := in.overlay(t, "overlays/single-node", "", in.sandboxedShop(t))
	here := func(text string) string { return strings.ReplaceAll(text, "-n pfl-forge ", "-n "+in.namespace+" ") }
	before := in.uid(t, "nats-0")
	sh.do(dir, here(strings.Replace(h.block("--role implementer --from -"), "--role implementer", "--namespace "+in.namespace+" --role server", 1)))
	wait.Until(t, "NATS is another pod", func() bool { is := in.uid(t, "nats-0"); return is != "" && is != before })
	// 1 is said of differences, and more of errors.
	shown := sh.do(dir, h.command("kubectl diff --server-side -k .")+" || [ $? = 1 ]")
	for _, service := range []string{"runner", "analyzer", "implementer", "reviewer", "reflector"} {
		if want := "+        image: pfl-forge/" + service + ":" + version; !strings.Contains(shown, want) {
			t.Errorf("kubectl diff does not say %q:\n%s", want, shown)
		}
	}
	sh.do(dir, h.command("kubectl apply --server-side -k ."))
	in.rolled(t, version, began)
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
	began := time.Now()
	in.version = version
	in.write(t, filepath.Join(source, "deploy", "k8s", "overlays", "single-node"), "", in.sandboxedShop(t))
	in.rolled(t, version, began)
}

// rolled waits until all services are of a version, which was asked for at that time, and ready.
func (in *installation) rolled(t *testing.T, version string, began time.Time) {
	t.Helper()
	const services = 6
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
