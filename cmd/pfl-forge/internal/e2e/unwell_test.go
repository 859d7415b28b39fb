package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/internal/testsize"
)

// TestBrokenDiskOfAReplica takes the state directory of one of two implementers away,
// as a broken disk does, while intents are worked on: the other one does the work, no
// task loses an attempt by it, and the replica works again when its disk is back.
func TestBrokenDiskOfAReplica(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	c := newCluster(t, appending)
	state := filepath.Join(c.dir, "state", "implementer-2")
	lines := c.append(1)
	if got := c.forge("run"); got.code != 0 {
		t.Fatalf("run: exit code %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	if err := os.Rename(state, state+".away"); err != nil {
		t.Fatal(err)
	}
	write(t, state, "no directory")
	for _, line := range []string{"two", "three", "four", "five", "six", "seven"} {
		lines = append(lines, line)
		if got := c.forge("create", line, "--title", "Append "+line, "--body", "Please.", "--recipe", "append", "--with", "LINE="+line); got.code != 0 {
			t.Fatalf("create: %s%s", got.stdout, got.stderr)
		}
	}
	if got := c.forge("run"); got.code != 0 {
		t.Fatalf("run: exit code %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	for _, line := range lines[2:] {
		got := c.forge("history", line, "--output", "json")
		if strings.Contains(got.stdout, "no space") || strings.Contains(got.stdout, "not a directory") {
			t.Errorf("%s was told of the disk:\n%s", line, got.stdout)
		}
	}
	if err := os.Remove(state); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(state+".away", state); err != nil {
		t.Fatal(err)
	}
	c.procs[3].kill() // the other one is gone, so this one has to do it
	if got := c.forge("create", "eight", "--title", "Append eight", "--body", "Please.", "--recipe", "append", "--with", "LINE=eight"); got.code != 0 {
		t.Fatalf("create: %s%s", got.stdout, got.stderr)
	}
	if got := c.forge("run"); got.code != 0 {
		t.Fatalf("run: exit code %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	r := c.clone()
	checkAppended(t, r, r.read("log.txt"), append(lines, "eight"))
}
