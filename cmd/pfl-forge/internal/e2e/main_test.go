package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
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
	for name, pkg := range programs() {
		if out, err := exec.Command("go", "build", "-o", filepath.Join(dir, name), pkg).CombinedOutput(); err != nil {
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
