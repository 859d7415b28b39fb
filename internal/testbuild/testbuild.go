// Package testbuild builds the programs that tests run as processes.
//
// A test that kills a program, or starts two of them, needs it as it is
// shipped; a goroutine in the test's own process cannot be killed.
package testbuild

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/pfl-forge/pfl-forge/internal/testsize"
)

// Programs builds main packages of the workspace into a folder, all at once,
// each with the name of its package. It returns what the go command prints.
func Programs(dir string, packages ...string) ([]byte, error) {
	args := []string{"build", "-o", dir + string(filepath.Separator)}
	if !testsize.Full() {
		args = append(args, "-ldflags=-w") // linking takes half as long without the data of debuggers
	}
	if raceEnabled && !testsize.Full() {
		// The packages are there already as the race detector wants them, and compiling
		// them once more would take longer than all the tests.
		args = append(args, "-race")
	}
	cmd := exec.CommandContext(context.Background(), "go", append(args, packages...)...)
	if testsize.Full() {
		Shipped(cmd)
	}
	return cmd.CombinedOutput()
}

// Shipped makes a go command compile as images are compiled. Then a package
// that another checkout has, too, is not compiled again.
func Shipped(cmd *exec.Cmd) {
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0", "GOFLAGS="+os.Getenv("GOFLAGS")+" -trimpath")
}
