package e2e

import (
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// sickTools is the folder in which the implementer finds its programs whose machine goes wrong.
const sickTools = "tools"

// giveTools lets that implementer find each program that is in PATH in a folder
// of its own, from which one can be taken.
func (c *cluster) giveTools() {
	c.t.Helper()
	tools := filepath.Join(c.dir, sickTools)
	if err := os.Mkdir(tools, 0o700); err != nil {
		c.t.Fatal(err)
	}
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		list, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			c.t.Fatal(err)
		}
		for _, program := range list {
			err := os.Symlink(filepath.Join(dir, program.Name()), filepath.Join(tools, program.Name()))
			if err != nil && !errors.Is(err, fs.ErrExist) { // the first in PATH counts
				c.t.Fatal(err)
			}
		}
	}
	c.own = map[string][]string{"implementer-2": {"PATH=" + tools}}
}

// takeGit takes git from one of two implementers, and gives it back at the end.
// Meanwhile /readyz of that replica says 503, and the other one does the work;
// at the end it is ready again by its own probe.
func (x *trouble) takeGit() {
	git, sick := filepath.Join(x.dir, sickTools, "git"), x.procs[4]
	x.move(git, git+".away")
	wait.Until(x.t, "the replica without git is not ready", func() bool { return x.ready(sick) == http.StatusServiceUnavailable })
	before := x.merged()
	x.hold()
	wait.Until(x.t, "the other replica does the work", func() bool { n := x.merged(); return n > before || n == x.asked })
	if got := x.ready(sick); got != http.StatusServiceUnavailable {
		x.t.Errorf("/readyz of the replica without git says %d at the end of the fault", got)
	}
	x.move(git+".away", git)
	wait.Until(x.t, "the replica is ready again", func() bool { return x.ready(sick) == http.StatusOK })
}

// ours is a program of an installation's own that makes a change, and approves it.
var ours = "#!/bin/sh\n" + helloAgent(":")

// TestProgramOfOneReplica has the program of an agent where one implementer runs, and not where the
// other one does: that one leaves the work to the first, no attempt is spent, and nobody is asked.
func TestProgramOfOneReplica(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	c := prepareCluster(t, map[string]string{"pfl-forge.yaml": "agent: ours\nreflection: {enabled: false}\nagents: {ours: {read_only: true, command: [ours]}}\n"})
	c.giveTools()
	programs := filepath.Join(c.dir, "programs")
	if err := errors.Join(os.Mkdir(programs, 0o700), os.WriteFile(filepath.Join(programs, "ours"), []byte(ours), 0o700)); err != nil {
		t.Fatal(err)
	}
	c.env = append(c.env, "PATH="+programs+string(os.PathListSeparator)+os.Getenv("PATH"))
	c.run()
	c.procs[3].stop() // the one that has it, so that the other one meets the command first
	if got := c.forge("create", "hello", "--title", "Say hello", "--body", "Please."); got.code != 0 {
		t.Fatalf("create: %s%s", got.stdout, got.stderr)
	}
	wait.Until(t, "the replica without the program leaves it", func() bool { return strings.Contains(c.log(c.procs[4]), "hand a command back") })
	c.procs[3].goOn()
	if got := c.forge("run"); got.code != 0 {
		t.Fatalf("run: exit code %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	got := c.forge("history", "hello", "--output", "json")
	told := func(word string) bool { return strings.Contains(got.stdout, word) }
	if got.code != 0 || slices.ContainsFunc([]string{"retry-agent", "missing_cli", "wait-for-replica"}, told) {
		t.Errorf("the history tells of the replica:\n%s%s", got.stdout, got.stderr)
	}
	if text := c.clone().read("hello.txt"); text != "hello\n" {
		t.Errorf("merged is %q", text)
	}
}
