package process

import (
	"encoding/json"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// supervisorName is the argument 0 by which this executable knows that it was
// started as a supervisor. Arguments 1 and following are the command.
const supervisorName = "pfl-forge-supervisor"

// The descriptors that a supervisor is given.
const (
	lifelineFD = 3
	reportFD   = 4
)

// init, not main, so that every executable that can run a command, tests
// included, can supervise it.
func init() { //nolint:gochecknoinits // as said
	if len(os.Args) > 1 && os.Args[0] == supervisorName {
		supervise(os.Args[1:])
	}
}

// supervise runs the command and exits when it and all its descendants are gone.
func supervise(argv []string) {
	syscall.CloseOnExec(lifelineFD)
	syscall.CloseOnExec(reportFD)

	v, err := superviseTree(argv)
	if err != nil {
		v.Start = err.Error()
	}
	report := os.NewFile(reportFD, "report")
	if err := json.NewEncoder(report).Encode(v); err != nil {
		syscall.Exit(1)
	}
	syscall.Exit(0) // os.Exit would wait a second in a build with the race detector
}

func superviseTree(argv []string) (verdict, error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return verdict{}, err
	}
	child, err := os.StartProcess(argv[0], argv, &os.ProcAttr{
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}, //nolint:forbidigo // this is a main
		// init runs on the main thread, which lives as long as this process:
		// so the command does not outlive a supervisor that is killed.
		Sys: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		return verdict{}, err
	}
	// Only now: the command would inherit that these are ignored.
	signal.Ignore(syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM)
	dropStdio()
	go killWhenReleased()
	return reap(child.Pid), nil
}

// dropStdio leaves the command's pipes to the command.
func dropStdio() {
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	for fd := range 3 {
		_ = unix.Dup3(null, fd, 0)
	}
}

// killWhenReleased kills the tree when the service closes the lifeline or dies.
func killWhenReleased() {
	var b [1]byte
	for {
		if _, err := syscall.Read(lifelineFD, b[:]); !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	for tick := time.Tick(20 * time.Millisecond); ; <-tick {
		killTree(os.Getpid())
	}
}

// reap collects every child until the command ended and none is left, and kills
// what the command left behind.
func reap(command int) verdict {
	var v verdict
	var deadline time.Time // set once the command ended
	tick := time.Tick(time.Millisecond)
	for {
		var status syscall.WaitStatus
		options := 0
		if !deadline.IsZero() {
			options = syscall.WNOHANG
		}
		pid, err := syscall.Wait4(-1, &status, options, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil: // ECHILD: nobody is left
			return v
		case pid == command:
			v.Status = status
			deadline = time.Now().Add(killDelay)
		case pid == 0: // somebody is left
			if time.Now().After(deadline) {
				v.Left = len(descendants(os.Getpid()))
				return v
			}
			killTree(os.Getpid())
			<-tick
		}
	}
}
