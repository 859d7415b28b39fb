// Package remotetest has the other end of package remote as tests need it: a container
// made of this very executable, without a cluster.
//
// A test calls Main first in its TestMain, since the container runs the test
// binary once more, and uses Container where a worker uses pods. It takes user
// namespaces: Need skips a test where the machine gives none.
package remotetest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent/process"
	"github.com/pfl-forge/pfl-forge/agent/remote"
	"github.com/pfl-forge/pfl-forge/agent/sandbox"
)

// enterArgument makes this executable the first process of a container.
const enterArgument = "enter-container"

// Main is the first line of the TestMain of tests that use a Container.
func Main() {
	if len(os.Args) == 3 && os.Args[1] == enterArgument {
		panic(enter(os.Args[2])) // it returns only where it fails
	}
	remote.Main(os.Args, os.Stdin, os.Stdout, os.Stderr) //nolint:forbidigo // it is the main of the other end
}

// Container is the executor of tests: what a pod's container is to remote.Serve:
// process 1 of namespaces of its own, in which the service's state is an empty volume.
type Container struct {
	// T fails if a container cannot be started.
	T testing.TB
	// State is the directory below which commands have their files.
	State string
}

// Name returns "pods", whose containers it stands for.
func (Container) Name() forge.Executor { return forge.ExecutorPods }

// Needs names the same as the executor of this machine.
func (Container) Needs() string { return "user namespaces" }

// Probe returns nil.
func (Container) Probe(context.Context, sandbox.Network) error { return nil }

// Run runs a command in a container of its own.
func (e Container) Run(ctx context.Context, c process.Command) (process.Report, error) {
	conn, ended := e.Start()
	defer ended()
	return remote.Run(ctx, conn, c, e.State)
}

// Start starts a container and returns its stdin and stdout. ended waits for its end.
func (e Container) Start() (conn io.ReadWriteCloser, ended func()) {
	e.T.Helper()
	cmd := exec.CommandContext(context.Background(), "/proc/self/exe", enterArgument, e.State)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 65532, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 65532, HostID: os.Getgid(), Size: 1}},
		AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN},
	}
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		e.T.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		e.T.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		e.T.Fatal(err)
	}
	return &stdio{out, in}, func() {
		_ = in.Close()
		_ = cmd.Wait()
		if stderr.Len() > 0 {
			e.T.Log(stderr.String())
		}
	}
}

// stdio is a process's stdout and stdin as one connection.
type stdio struct {
	io.ReadCloser
	io.Writer
}

func (s *stdio) Close() error {
	return errors.Join(s.ReadCloser.Close(), s.Writer.(io.Closer).Close())
}

// enter mounts an empty volume at the state, starts the loopback, and becomes Main.
func enter(state string) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", state, "tmpfs", 0, "mode=0777"); err != nil {
		return err
	}
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return err
	}
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	loopback, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	loopback.SetUint16(unix.IFF_UP)
	if err := unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, loopback); err != nil {
		return err
	}
	// Nobody in a pod has privileges.
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return err
	}
	return syscall.Exec("/proc/self/exe", []string{os.Args[0], remote.Argument}, os.Environ())
}

// Need skips a test where the machine gives no user namespaces.
func Need(t *testing.T) {
	t.Helper()
	if err := process.Probe(t.Context(), sandbox.NetworkNone); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
}
