package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/pfl-forge/pfl-forge/internal/testsize"
)

// bin is the folder of the built programs: pfl-forge, the five services, and
// nats-server.
var bin string

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "pfl-forge-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	bin = dir
	build := []string{"build"}
	if raceEnabled && !testsize.Full() {
		// The packages are there already as the race detector wants them, and compiling
		// them once more would take longer than all the tests.
		build = append(build, "-race")
	}
	if err := os.Setenv("GORACE", "atexit_sleep_ms=0"); err != nil { // or each program sleeps for a second at its end
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for name, pkg := range programs() {
		if out, err := exec.Command("go", append(build, "-o", filepath.Join(dir, name), pkg)...).CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "building %s: %v\n%s", name, err, out)
			return 1
		}
	}
	return m.Run()
}

// programs are the packages to build, by the names of the programs.
func programs() map[string]string {
	const module = "github.com/pfl-forge/pfl-forge"
	all := map[string]string{
		"pfl-forge":   module + "/cmd/pfl-forge",
		"nats-server": "github.com/nats-io/nats-server/v2",
	}
	for _, s := range []string{"runner", "analyzer", "implementer", "reviewer", "reflector"} {
		all[s] = module + "/services/" + s + "/cmd/" + s
	}
	return all
}
