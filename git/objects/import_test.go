package objects

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	gitcli "github.com/pfl-forge/pfl-forge/git"
)

// TestImportBesideAFetch: a fetch that failed removes what git has begun to receive there, by
// its names, while an agent's commit with many objects is brought in. All of that is there then.
func TestImportBesideAFetch(t *testing.T) {
	db, git, _ := objectsOf(t)
	have := gitcli.OID(strings.TrimSpace(git("rev-parse", "HEAD")))
	agent := filepath.Join(t.TempDir(), "agent")
	git("clone", "-q", ".", agent)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 300 {
		text := make([]byte, 2000)
		for n := range text {
			text[n] = byte(rng.Uint32())
		}
		if err := os.WriteFile(filepath.Join(agent, fmt.Sprint("new", i)), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"add", "-A"}, {"-c", "user.name=a", "-c", "user.email=a@a", "commit", "-q", "-m", "much"}} {
		if out, err := exec.Command("git", append([]string{"-C", agent}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %s", args, out)
		}
	}
	commit := gitcli.OID(strings.TrimSpace(git("-C", agent, "rev-parse", "HEAD")))

	var removing sync.WaitGroup
	ended := make(chan struct{})
	removing.Go(func() {
		for {
			select {
			case <-ended:
				return
			default:
			}
			begun, _ := filepath.Glob(filepath.Join(db.ObjectDir(), "pack", "tmp_*")) // the pattern is one
			for _, name := range begun {
				_ = os.Remove(name)
			}
		}
	})
	err := db.Import(t.Context(), commit, have, Limits{}.OrDefault(), func(to string) error {
		return os.CopyFS(to, os.DirFS(filepath.Join(agent, ".git", "objects")))
	})
	close(ended)
	removing.Wait()
	if err != nil {
		t.Fatal(err)
	}
	git("rev-list", "--objects", "--quiet", string(commit))
	if packs, err := filepath.Glob(filepath.Join(db.ObjectDir(), "pack", "*.idx")); err != nil || len(packs) != 2 {
		t.Errorf("the packs are %q", packs)
	}
}
