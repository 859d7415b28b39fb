//go:build cluster

package k8s

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
)

// programs is the folder of what is built of this repository for all tests: to link one
// of our programs takes seconds of a processor. TestMain makes it and takes it away.
var programs string

// shared returns the path of a program that buildPrograms has built.
func shared(name string) string { return filepath.Join(programs, name) }

// buildPrograms begins to build what pods of the tests run and what the tests
// themselves do, and returns what waits for it: images are made meanwhile.
func (c *cluster) buildPrograms(t *testing.T) (built func()) {
	t.Helper()
	inPods := goBuild(t, c.arch, "./deploy/k8s/internal/testpod", "github.com/nats-io/nats-server/v2")
	here := goBuild(t, runtime.GOARCH, "./cmd/pfl-forge", "./services/gateway/cmd/gateway")
	var said bytes.Buffer
	ended := make(chan error, 1)
	go func() {
		for _, cmd := range []*exec.Cmd{inPods, here} {
			cmd.Stdout, cmd.Stderr = &said, &said
			if err := cmd.Run(); err != nil {
				ended <- err
				return
			}
		}
		ended <- nil
	}()
	return func() {
		t.Helper()
		if err := <-ended; err != nil {
			t.Fatalf("%v\n%s", err, &said)
		}
	}
}

// goBuild returns the command that builds static programs into the folder of all
// tests, each by the last part of its package's path, with one compilation for all.
func goBuild(t *testing.T, arch string, packages ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", slices.Concat([]string{"build", "-trimpath", "-ldflags=-s -w", "-o", programs}, packages)...)
	cmd.Dir, cmd.Env = root(t), append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch)
	return cmd
}

// suites is held by who looks for the program of suite, or builds it.
var suites sync.Mutex

// suite returns the path of a program with the tests of executors, which is
// built once for each kind of machine.
func suite(t *testing.T, arch string) string {
	t.Helper()
	suites.Lock()
	defer suites.Unlock()
	binary := shared("suite-" + arch)
	if _, err := os.Stat(binary); err == nil {
		return binary
	}
	compile := exec.CommandContext(t.Context(), "go", "test", "-c", "-trimpath", "-ldflags=-s -w", "-o", binary, "./agent/process")
	compile.Dir, compile.Env = root(t), append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch)
	output(t, compile)
	return binary
}
