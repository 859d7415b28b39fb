package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// TestGroupsOfReplicas: a project is served by the replicas of its group, with the permissions
// that auth init gives, and other replicas neither take its commands nor clone it. A project
// whose group has no replicas is refused. When groups change, what waits reaches the new ones.
func TestGroupsOfReplicas(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	c := newCluster(t, appending, "FORGE_PROJECT_GROUPS="+project+"=large", "FORGE_GROUP=large")
	other := c.procs[4] // an implementer
	restart := func(p *process, args ...string) {
		t.Helper()
		p.kill()
		p.args = append(p.args, args...)
		c.start(p)
	}
	restart(other, "--group=", "--project=other="+c.origin, "--state-dir="+filepath.Join(c.dir, "state", "other"))
	wait.Until(t, "who serves what is seen", func() bool {
		got := c.forge("doctor")
		return got.code == 0 && strings.Contains(got.stdout, "6 replicas of 5 services")
	})
	lines := c.append(3)
	c.says(c.forge("run"), 0)
	r := c.clone()
	checkAppended(t, r, r.read("log.txt"), lines)
	if _, err := os.Stat(filepath.Join(c.dir, "state", "other", "projects", project)); err == nil {
		t.Error("a replica of another group has cloned the project")
	}
	if log, err := os.ReadFile(other.log.Name()); err != nil || strings.Contains(string(log), "append-") {
		t.Errorf("a replica of another group got commands of the project: %v\n%s", err, log)
	}
	c.says(c.forge("create", "nowhere", "--project", "missing", "--title", "Nowhere", "--body", "Please."), 1, `project "missing" is not served`)

	analyzer := c.procs[2]
	analyzer.kill()
	c.says(c.forge("create", "later", "--title", "Later", "--body", "Please.", "--recipe", "append", "--with", "LINE=later"), 0)
	c.env = nil
	for _, p := range c.procs[1:] {
		if p != analyzer {
			p.kill()
		}
	}
	for _, p := range c.procs[1:] {
		if p != other {
			c.start(p)
		}
	}
	c.says(c.forge("run"), 0)
	r = c.clone()
	checkAppended(t, r, r.read("log.txt"), append(lines, "later"))
}
