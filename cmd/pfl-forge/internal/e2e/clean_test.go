package e2e

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// cleaning has recipes whose changes merge, or not: late is approved at its
// fourth attempt, which is the first one of a retry.
var cleaning = map[string]string{
	"log.txt": "begin\n",
	"pfl-forge.yaml": `base_branch: main
policy: {approvals: {not_requester: false}}
recipes:
  append:
    params: [{name: LINE, question: "Which line?"}]
    run: echo "$LINE" >> log.txt
  late:
    run: echo "$FORGE_ATTEMPT" > late.txt
    check: test "$(cat late.txt)" -ge 4
  never:
    run: echo x > never.txt
    check: "false"
  risky:
    risk: high
    run: echo x > risky.txt
`,
}

// TestCleanDistributed has what finished intents left removed at the origin, by whichever
// implementer, and nothing of the others.
func TestCleanDistributed(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	c := newCluster(t, cleaning)
	c.append(3)
	c.says(c.forge("run"), 0) // before late, whose attempts would count for nothing where others are merged meanwhile
	for _, name := range []string{"late", "never", "risky"} {
		if got := c.forge("create", name, "--title", name, "--recipe", name); got.code != 0 {
			t.Fatalf("create: %+v", got)
		}
	}
	if got := c.forge("run"); got.code != 2 {
		t.Fatalf("run: %+v", got)
	}
	c.keeps("append-00", "append-01", "append-02", "late", "never")
	c.awaitIdle()
	c.says(c.forge("clean", "--dry-run"), 0, "append-00\tdone\t", "would free ")
	c.says(c.forge("clean", "late"), 1, "late is error and can be retried: cancel it first")
	c.says(c.forge("clean", "append-00", "risky"), 1, "risky is proposed: it has not ended")
	c.says(c.forge("clean", "nobody"), 1, "there is no intent nobody")
	c.says(c.forge("clean", "--older-than", "1h"), 0, "nothing to remove")
	c.keeps("append-00", "append-01", "append-02", "late", "never")

	c.says(c.forge("clean", "append-00", "-o", "json"), 0, `"id": "append-00"`, `"removed": true`)
	c.keeps("append-01", "append-02", "late", "never")
	var both sync.WaitGroup
	for range 2 { // at the same time, while one is retried
		both.Go(func() { c.says(c.forge("clean"), 0) })
	}
	c.says(c.forge("retry", "late"), 0)
	both.Wait()
	c.says(c.forge("run"), 2, "late-001")
	c.keeps("late", "never")
	if r := c.clone(); strings.TrimSpace(r.read("late.txt")) != "4" {
		t.Errorf("what was retried did not be merged: %q", r.read("late.txt"))
	}

	c.says(c.forge("cancel", "never"), 0)
	c.awaitIdle()
	c.says(c.forge("clean"), 0, "late\tdone\t", "never\tcancelled\t", "freed ")
	c.keeps()
	c.says(c.forge("retry", "never"), 1, "the intent is cancelled")
	c.says(c.forge("clean"), 0, "nothing to remove")
	c.says(c.forge("approve", "risky"), 0)
	c.says(c.forge("run"), 0)
	c.keeps("risky")

	for _, p := range c.procs {
		if p.name == "implementer" {
			p.kill()
		}
	}
	got := c.forge("clean")
	c.says(got, 1, "no implementer answers: start forge-implementer")
	if strings.Contains(got.stderr, "nothing to remove") {
		t.Error("it says that there is nothing")
	}
	c.keeps("risky")
	if out, err := exec.CommandContext(t.Context(), "git", "-C", c.origin, "fsck", "--no-dangling", "--no-progress").CombinedOutput(); err != nil {
		t.Errorf("git fsck: %v\n%s", err, out)
	}
}

// awaitIdle waits until no attempt is just ending, of an intent that is done:
// on a busy machine that takes a while.
func (c *cluster) awaitIdle() {
	c.t.Helper()
	wait.Until(c.t, "no attempt is just ending", func() bool { return !strings.Contains(c.forge("clean", "--dry-run").stderr, "just ending") })
}

func (c *cluster) says(got result, code int, words ...string) {
	c.t.Helper()
	for _, w := range words {
		if !strings.Contains(got.stdout+got.stderr, w) {
			c.t.Errorf("it does not say %q", w)
			code = -1
		}
	}
	if got.code != code {
		c.t.Errorf("exit code %d\n%s%s", got.code, got.stdout, got.stderr)
	}
}

// keeps makes sure of which intents the origin has hidden refs, and that no clone has any
// of others: it is told, and takes a moment.
func (c *cluster) keeps(intents ...string) {
	c.t.Helper()
	if found := c.hidden(c.origin); !slices.Equal(found, intents) {
		c.t.Errorf("the origin keeps %q, want %q", found, intents)
	}
	clones, err := filepath.Glob(filepath.Join(c.dir, "state", "*", "projects", project, "clone.git"))
	if err != nil || len(clones) < 4 {
		c.t.Fatalf("found %q, %v", clones, err)
	}
	for _, clone := range clones {
		wait.Until(c.t, clone+" lets go", func() bool {
			return !slices.ContainsFunc(c.hidden(clone), func(id string) bool { return !slices.Contains(intents, id) })
		})
	}
}

// hidden lists the intents of which a repository has kept commits; the origin also those
// of which it has heads of tasks, which clones have until they look again.
func (c *cluster) hidden(dir string) []string {
	c.t.Helper()
	out, err := exec.CommandContext(c.t.Context(), "git", "-C", dir, "for-each-ref", "--format=%(refname)", "refs/forge").CombinedOutput()
	if err != nil {
		c.t.Fatalf("%v\n%s", err, out)
	}
	var found []string
	for ref := range strings.Lines(string(out)) {
		parts := strings.Split(strings.TrimSpace(ref), "/")
		id := parts[2]
		if id == "_proofs" { // those of merged commits stay
			continue
		}
		if id == "_heads" {
			if id = parts[3][:strings.LastIndexByte(parts[3], '-')]; dir != c.origin {
				continue
			}
		}
		found = append(found, id)
	}
	slices.Sort(found)
	return slices.Compact(found)
}
