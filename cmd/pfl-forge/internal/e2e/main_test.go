package e2e

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/pfl-forge/pfl-forge/internal/testbuild"
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
	if out, err := testbuild.Programs(bin, programs()...); err != nil {
		fmt.Fprintf(os.Stderr, "building the programs: %v\n%s", err, out)
		return 1
	}
	return m.Run()
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
