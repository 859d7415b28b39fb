package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/internal/testdir"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// TestBackupsWhileWorkGoesOn copies the server again and again while intents are
// merged, and kills the run. Each copy takes the place of the store: what was merged
// after it is not made again, all else is merged once, and every journal proves itself.
func TestBackupsWhileWorkGoesOn(t *testing.T) {
	t.Parallel()
	r := newRepo(t, appending)
	lines := appendDrafts(r, testsize.Of(4, 12))
	copies := testsize.Of(2, 3)
	run := r.start("run")
	dir := testdir.New(t)
	for i := range copies {
		run.until(fmt.Sprintf("%d changes are merged", i+1), func() bool { return len(r.subjects()) > i+1 })
		r.must(0, "backup", filepath.Join(dir, fmt.Sprint(i)))
	}
	_ = run.cmd.Process.Kill()
	<-run.ended
	for i := copies - 1; i >= 0; i-- { // the oldest last: it knows the least of what is merged by then
		merged := r.subjects()
		if err := os.RemoveAll(filepath.Join(r.dir, ".forge", "nats")); err != nil {
			t.Fatal(err)
		}
		var doc struct {
			Findings []any
			Ahead    []struct {
				Intent          string
				Unknown, Paused bool
			}
		}
		out := r.must(0, "restore", filepath.Join(dir, fmt.Sprint(i)), "-o", "json")
		if err := json.Unmarshal([]byte(out.stdout), &doc); err != nil {
			t.Fatalf("%v:\n%s", err, out.stdout)
		}
		if len(doc.Findings) > 0 {
			t.Errorf("copy %d: %v", i, doc.Findings)
		}
		for _, a := range doc.Ahead {
			if a.Unknown || !a.Paused {
				t.Errorf("copy %d: %+v", i, a)
				continue
			}
			r.must(0, "cancel", a.Intent)
		}
		r.must(0, "run")
		r.must(0, "audit-log", "verify")
		now := r.subjects()
		if !slices.Equal(now[:len(merged)], merged) {
			t.Errorf("copy %d: main lost commits:\n%s", i, strings.Join(now, "\n"))
		}
	}
	checkAppended(t, r, r.read("log.txt"), lines)
	checkProven(t, r.dir, machineKeys(), len(lines)-1)
	r.tidy()
}

// TestRestoredOrganisation copies an organisation's server with the account that
// is for it, while services work, loses the server, and puts the copy into an
// empty one: what was merged after the copy is found in a clone, and cancelled
// by a person before any worker is up; everything else goes on, and comes once.
func TestRestoredOrganisation(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	c := newCluster(t, appending)
	c.initKeys("--backups")
	const intents = 6
	lines := c.append(intents)
	wait.Until(t, "some are done", func() bool { return c.done() >= 2 })
	folder := filepath.Join(c.dir, "backup")
	if got := c.asBackup(c.dir, "backup", folder); got.code != 0 {
		t.Fatalf("backup: %+v", got)
	}
	wait.Until(t, "all are done", func() bool { return c.done() == intents })

	for _, p := range c.procs {
		p.kill()
	}
	if err := os.RemoveAll(filepath.Join(c.dir, "nats-0")); err != nil {
		t.Fatal(err)
	}
	c.start(c.procs[0])
	var doc struct {
		Findings []any
		Ahead    []struct{ Intent string }
	}
	clone := c.clone()
	var got result
	wait.Until(t, "the server is up, and restored", func() bool {
		got = c.asBackup(clone.dir, "restore", folder, "--project", project, "-o", "json")
		return got.code == 0
	})
	if err := json.Unmarshal([]byte(got.stdout), &doc); err != nil || len(doc.Findings) > 0 {
		t.Fatalf("%v: %+v", err, got)
	}
	c.start(c.procs[1]) // the runner alone
	for _, a := range doc.Ahead {
		wait.Until(t, a.Intent+" is cancelled", func() bool {
			said := c.forge("cancel", a.Intent)
			return said.code == 0 || strings.Contains(said.stderr, "cancelled already")
		})
	}
	for _, p := range c.procs[2:] {
		c.start(p)
	}
	wait.Until(t, "what is not cancelled is done", func() bool { return c.done() == intents-len(doc.Ahead) })
	checkAppended(t, c.clone(), c.clone().read("log.txt"), lines)
	if got := c.forge("audit-log", "verify"); got.code != 0 {
		t.Errorf("%+v", got)
	}
}

// asBackup runs pfl-forge with the account backup.
func (c *cluster) asBackup(dir string, args ...string) result {
	c.t.Helper()
	cmd := exec.CommandContext(c.t.Context(), filepath.Join(bin, "pfl-forge"),
		append(args, "-C", dir, "--server", c.url, "--nkey", c.seed("backup"), "--tls-ca", filepath.Join(c.keys, "ca.crt"))...)
	return launch(c.t, cmd).finish()
}
