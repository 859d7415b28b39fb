package process

import (
	"encoding/json"
	"errors"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pfl-forge/pfl-forge/agent/sandbox"
)

// supervisorName is the argument 0 by which this executable knows that it is a
// supervisor.
const supervisorName = "pfl-forge-supervisor"

// The descriptors of a supervisor beside stdin, stdout and stderr.
const (
	lifelineFD = 3 // the order, then heartbeats; closed to end the command
	reportFD   = 4 // for its verdict
	offerFD    = 5 // for a listener in a sandbox; may be closed
	lockFD     = 6 // of the service's state; may be closed
)

// order is the first message on the lifeline: the command that the supervisor runs.
type order struct {
	// Args starts with the path of the command.
	Args []string
	Dir  string
	// Sandbox is the spec whose Attributes the supervisor was started with; nil if
	// there is none.
	Sandbox *sandbox.Spec
	// User is that of the service.
	User sandbox.User
	// Groups are the control groups of supervisor and command; may be none.
	Groups []string
	// MaxSilence is the time without a heartbeat after which the command is killed; 0
	// means that there are no heartbeats.
	MaxSilence time.Duration
	// Protect keeps a command without a sandbox from tracing the supervisor; see the
	// function.
	Protect bool
}

// init runs before any main or test, so that every executable that runs commands, tests
// included, can be their supervisor.
func init() { //nolint:gochecknoinits // see above
	if len(os.Args) > 0 && os.Args[0] == supervisorName {
		supervise()
	}
}

// supervise runs the command, reports the verdict, and exits when the command and all
// its descendants are gone.
func supervise() {
	for fd := lifelineFD; fd <= lockFD; fd++ {
		syscall.CloseOnExec(fd)
	}
	var v verdict
	err := closeInherited()
	if err == nil {
		v, err = superviseTree()
	}
	if err != nil {
		v.Start, v.Lack = err.Error(), shortage(err)
	}
	report := os.NewFile(reportFD, "report")
	if err := json.NewEncoder(report).Encode(v); err != nil {
		syscall.Exit(1)
	}
	syscall.Exit(0) // os.Exit would wait a second in a build with the race detector
}

// closeInherited closes every descriptor that the service was itself started with, such as
// that of exec 9<dir in a shell: by it a command in a sandbox would read and write a
// directory outside. Those that this process opened are marked to be closed on exec, and are
// told apart by that.
func closeInherited() error {
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return err
	}
	for _, entry := range open {
		fd, err := strconv.Atoi(entry.Name())
		if err != nil {
			return err
		}
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		if fd <= lockFD || err != nil || flags&unix.FD_CLOEXEC != 0 { // an error: it was that of the directory
			continue
		}
		if err := unix.Close(fd); err != nil {
			return err
		}
	}
	return nil
}

// adopt prepares this process to end a command without a sandbox, with all that it starts.
func adopt(o *order) error {
	if o.Protect {
		if err := Protect(); err != nil {
			return err
		}
		sandbox.LimitFiles()
	}
	return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
}

// superviseTree runs the command that the order describes.
func superviseTree() (verdict, error) {
	var o order
	lifeline := os.NewFile(lifelineFD, "lifeline")
	if err := json.NewDecoder(lifeline).Decode(&o); err != nil {
		return verdict{}, err // the service is gone
	}
	sacrifice()
	sys := &syscall.SysProcAttr{Setsid: true}
	if o.Sandbox != nil {
		if err := enter(&o); err != nil {
			return verdict{Sandbox: true}, err
		}
	} else {
		if err := adopt(&o); err != nil {
			return verdict{}, err
		}
		// init runs on the main thread, which lives as long as this process:
		// so the command does not outlive a supervisor that is killed.
		sys.Pdeathsig = syscall.SIGKILL
	}
	reserveThreads()
	child, err := os.StartProcess(o.Args[0], o.Args, &os.ProcAttr{
		Dir: o.Dir, Sys: sys,
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}, //nolint:forbidigo // this is a main
	})
	if err != nil {
		return verdict{}, err
	}
	// Only now: the command would inherit that these are ignored.
	signal.Ignore(syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGABRT, syscall.SIGUSR1, syscall.SIGUSR2)
	dropStdio()
	kill := func() { killTree(os.Getpid()) }
	if o.Sandbox != nil {
		// This is process 1 of a namespace: all others in it are its descendants.
		kill = func() { _ = syscall.Kill(-1, syscall.SIGKILL) }
	}
	go killWhenReleased(lifeline, o.MaxSilence, kill)
	v := reap(child.Pid, kill)
	leaveGroups(o.Groups)
	return v, nil
}

// sacrifice has the kernel end the processes of this command before any other when
// the machine runs out of memory: the largest of them first, and never a service.
// A machine that does not offer this has it end the largest process there is.
func sacrifice() {
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
}

// reserveThreads starts spare threads, which the runtime keeps. Without them the
// runtime would abort this process if it needed a thread after a command has used up
// all that are allowed.
func reserveThreads() {
	const spare = 8
	var all sync.WaitGroup
	all.Add(spare)
	for range spare {
		go func() {
			runtime.LockOSThread() // until all run, so that each has a thread of its own
			defer runtime.UnlockOSThread()
			all.Done()
			all.Wait()
		}()
	}
	all.Wait()
}

// enter moves this process into the sandbox, and drops the privileges of this thread,
// which will start the command.
func enter(o *order) error {
	runtime.LockOSThread()
	if err := o.Sandbox.Enter(o.User); err != nil {
		return err
	}
	if o.Sandbox.Listens() {
		socket := os.NewFile(offerFD, "offer")
		if err := o.Sandbox.Offer(socket); err != nil {
			return err
		}
		_ = socket.Close()
	}
	return sandbox.Restrict()
}

// dropStdio closes the command's pipes in the supervisor, so that the service sees
// their end when the command closes them.
func dropStdio() {
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	for fd := range 3 {
		_ = unix.Dup3(null, fd, 0)
	}
}

// killWhenReleased waits until the service closes the lifeline, dies, or sends no
// heartbeat in time, and then kills the tree until this process exits.
func killWhenReleased(lifeline *os.File, pulse time.Duration, kill func()) {
	var b [16]byte // the rest of the order, then heartbeats
	for pulse <= 0 || waitReadable(pulse) {
		if n, err := syscall.Read(lifelineFD, b[:]); n <= 0 && !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	runtime.KeepAlive(lifeline)
	for tick := time.Tick(20 * time.Millisecond); ; <-tick {
		kill()
	}
}

// waitReadable reports whether the lifeline became readable, or was closed, in time.
func waitReadable(within time.Duration) bool {
	fds := []unix.PollFd{{Fd: lifelineFD, Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(fds, int(within.Milliseconds()))
		if !errors.Is(err, syscall.EINTR) {
			return n != 0
		}
	}
}

// reap collects every child until the command has ended and none is left, and kills
// those that outlive the command.
func reap(command int, kill func()) verdict {
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
		case err != nil: // ECHILD: no process is left
			return v
		case pid == command:
			v.Status = status
			deadline = time.Now().Add(killDelay)
		case pid == 0: // some process is left
			if time.Now().After(deadline) {
				v.Left = len(descendants(os.Getpid()))
				return v
			}
			kill()
			<-tick
		}
	}
}
