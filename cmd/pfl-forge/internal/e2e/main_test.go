package e2e

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/pfl-forge/pfl-forge/internal/testsize"
)

// bin is the folder of the built programs: pfl-forge, the six services, and
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
	if err := os.Setenv("GORACE", "atexit_sleep_ms=0"); err != nil { // or each program sleeps for a second at its end
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	// What the tests' person trusts is not what the user of this machine trusts.
	if err := os.Setenv("XDG_STATE_HOME", filepath.Join(dir, "state")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	flag.Parse()
	if flag.Lookup("test.list").Value.String() != "" { // nothing is run
		return m.Run()
	}
	if out, err := build(); err != nil {
		fmt.Fprintf(os.Stderr, "building the programs: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// build builds all programs at once, into bin.
func build() ([]byte, error) {
	args := []string{"build", "-o", bin + string(filepath.Separator)}
	if raceEnabled && !testsize.Full() {
		// The packages are there already as the race detector wants them, and compiling
		// them once more would take longer than all the tests.
		args = append(args, "-race", "-ldflags=-w")
	}
	cmd := exec.Command("go", append(args, programs()...)...)
	if testsize.Full() {
		shipped(cmd)
	}
	return cmd.CombinedOutput()
}

// shipped makes a go command compile as images are compiled. Then a package that another checkout
// has, too, is not compiled again.
func shipped(cmd *exec.Cmd) {
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0", "GOFLAGS="+os.Getenv("GOFLAGS")+" -trimpath")
}

// programs are the packages to build. Each program has the name of its package.
func programs() []string {
	const module = "github.com/pfl-forge/pfl-forge"
	all := []string{module + "/cmd/pfl-forge", "github.com/nats-io/nats-server/v2"}
	for _, s := range []string{"runner", "analyzer", "implementer", "reviewer", "reflector", "gateway"} {
		all = append(all, module+"/services/"+s+"/cmd/"+s)
	}
	return all
}
