package e2e

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// TestOriginGoesAway takes the git origin away while intents are worked on, and
// kills the runner meanwhile. One line tells a person, nothing fails, and all
// goes on by itself once the origin is back.
func TestOriginGoesAway(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	c := newCluster(t, appending)
	lines := c.append(8)
	wait.Until(t, "something is merged", func() bool { return c.done() > 0 })
	away := c.origin + ".away"
	if err := os.Rename(c.origin, away); err != nil {
		t.Fatal(err)
	}
	said := regexp.MustCompile("the git origin (cannot be reached|has been out of reach)")
	wait.Until(t, "the project knows", func() bool { return said.MatchString(c.forge("status").stderr) })
	if got := c.forge("inbox", "--list"); said.MatchString(got.stdout) {
		t.Errorf("a short outage is in the inbox:\n%s", got.stdout)
	}
	runner := c.procs[1]
	runner.kill()
	c.start(runner)
	wait.Until(t, "a person is told", func() bool { return said.MatchString(c.forge("inbox", "--list").stdout) })
	if got := c.forge("inbox", "-o", "json"); strings.Count(got.stdout, `"waiting":`) != 1 || !strings.Contains(got.stdout, c.origin) {
		t.Errorf("not one line of the inbox, with the origin:\n%s", got.stdout)
	}
	c.says(c.forge("doctor"), 0, "git origin")
	before := c.done()
	if err := os.Rename(away, c.origin); err != nil {
		t.Fatal(err)
	}
	back := time.Now()
	wait.Until(t, "something more is merged", func() bool { return c.done() > before })
	t.Logf("merged %s after the origin's return", time.Since(back).Round(100*time.Millisecond))
	c.says(c.forge("run"), 0, "8 done")
	r := c.clone()
	checkAppended(t, r, r.read("log.txt"), lines)
	for _, i := range []string{"append-00", "append-07"} {
		if got := c.forge("history", i); strings.Contains(got.stdout, "retry-agent") {
			t.Errorf("%s spent an attempt:\n%s", i, got.stdout)
		}
	}
	if got := c.forge("status"); said.MatchString(got.stderr) {
		t.Errorf("the project still says that the origin is away:\n%s", got.stderr)
	}
}

// TestOriginKeepsNothing has a hook of the origin refuse all that workers keep,
// and then that of one change: the first is waited for as if the origin were
// away, and the second is that change's alone.
func TestOriginKeepsNothing(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	c := newCluster(t, appending)
	x := &trouble{cluster: c}
	hook := x.hook("while read -r old new ref; do case $ref in refs/forge/*) echo no refs of yours >&2; exit 1;; esac; done; exit 0")
	lines := c.append(4)
	said := regexp.MustCompile("the git origin (cannot be reached|has been out of reach)")
	wait.Until(t, "the project knows", func() bool {
		got := c.forge("status").stderr
		return said.MatchString(got) && strings.Contains(got, "keeps nothing below refs/forge: no refs of yours")
	})
	x.hook(`while read -r old new ref; do
  git cat-file -p "$new:log.txt" 2>/dev/null | grep -q line-02 && { echo line-02 is a secret >&2; exit 1; }
done; exit 0`)
	c.says(c.forge("run"), 2, "3 done, 1 failed")
	c.says(c.forge("inbox", "--list"), 0, "line-02 is a secret")
	if got := c.forge("status").stderr; said.MatchString(got) {
		t.Errorf("the project still says that nothing is kept:\n%s", got)
	}
	if err := os.Remove(hook); err != nil {
		t.Fatal(err)
	}
	c.says(c.forge("retry", "append-02"), 0)
	c.says(c.forge("run"), 0, "4 done")
	r := c.clone()
	checkAppended(t, r, r.read("log.txt"), lines)
	for _, i := range []string{"append-00", "append-02"} {
		if got := c.forge("history", i); strings.Contains(got.stdout, "retry-agent") {
			t.Errorf("%s spent an attempt:\n%s", i, got.stdout)
		}
	}
}
