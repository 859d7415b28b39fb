package sim

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/pfl-forge/pfl-forge/internal/testsize"
)

// TestPlantedBugs builds the rules with one bug at a time, as described in
// testdata/planted, and makes sure that the simulator finds it. Without this,
// nobody would know whether silence means that all is well. It has as many seeds as
// the rules themselves have in CI; most bugs need a few hundred of them.
func TestPlantedBugs(t *testing.T) {
	testsize.OnlyFull(t) // compiling the rules anew takes longer than all other tests of the simulator
	for _, path := range testsize.Part(t, plantedBugs(t)) {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			t.Parallel()
			overlay := plant(t, path)
			binary := filepath.Join(t.TempDir(), "sim.test")
			build := exec.CommandContext(t.Context(), "go", "test", "-c", "-ldflags", "-s -w", "-overlay", overlay, "-o", binary, ".")
			if out, err := build.CombinedOutput(); err != nil {
				t.Fatalf("building with the bug: %v\n%s", err, out)
			}
			looks := append(known(t, path), []string{"TestSeeds", "-seeds", "3000"}, []string{"TestDuplicates"}, []string{"TestSeeds", "-seeds", "100000"})
			for _, look := range looks {
				out, err := exec.CommandContext(t.Context(), binary, append([]string{"-enough", "1", "-test.run"}, look...)...).CombinedOutput()
				if seed := failingSeed.FindSubmatch(out); err != nil && seed != nil {
					t.Logf("found by %s in seed %s", look, seed[1])
					return
				}
			}
			t.Error("the bug was not found")
		})
	}
}

var failingSeed = regexp.MustCompile(`seed (\d+)`)

// known returns where a bug is found first, so that nothing is played before: its file says "seed"
// and a number for the world in which it shows, or "duplicates" if it shows only when messages are
// repeated. After a change of the rules it may show elsewhere, which takes longer to find.
func known(t *testing.T, path string) [][]string {
	t.Helper()
	a, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if regexp.MustCompile(`(?m)^duplicates$`).Match(a.Comment) {
		return [][]string{{"TestDuplicates"}}
	}
	if seed := regexp.MustCompile(`(?m)^seed (\d+)$`).FindSubmatch(a.Comment); seed != nil {
		return [][]string{{"TestSeeds", "-first", string(seed[1]), "-seeds", "1"}}
	}
	return nil
}

// TestPlantedBugsHaveTheirPlace makes sure, without compiling anything, that a
// change of the rules took the bug that is planted in them along.
func TestPlantedBugsHaveTheirPlace(t *testing.T) {
	for _, path := range plantedBugs(t) {
		plant(t, path)
	}
}

// plantedBugs returns the files that describe a bug.
func plantedBugs(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob("testdata/planted/*.txtar")
	if err != nil || len(paths) < 10 {
		t.Fatalf("%d planted bugs, %v; want at least 10", len(paths), err)
	}
	return paths
}

// plant writes an overlay in which one place of one file is changed.
func plant(t *testing.T, path string) string {
	t.Helper()
	a, err := txtar.ParseFile(path)
	if err != nil || len(a.Files) != 2 || a.Files[1].Name != "becomes" {
		t.Fatalf("%s is not a planted bug: %v", path, err)
	}
	file, err := filepath.Abs(filepath.Join("..", a.Files[0].Name))
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, after := bytes.TrimRight(a.Files[0].Data, "\n"), bytes.TrimRight(a.Files[1].Data, "\n")
	if n := bytes.Count(source, before); n != 1 {
		t.Errorf("%s: the place to plant it is there %d times in %s; want once", path, n, file)
	}
	changed := filepath.Join(t.TempDir(), filepath.Base(file))
	if err := os.WriteFile(changed, bytes.Replace(source, before, after, 1), 0o600); err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {file: changed}})
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "overlay.json")
	if err := os.WriteFile(name, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}
