// Package consoletest runs programs on an emulated terminal.
//
// Tests of the live view start a program with Start, press keys, and wait for
// what a person would see with Await. End fails unless the program leaves the
// terminal as it found it: cursor shown, main screen, modes restored.
package consoletest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"

	"github.com/creack/pty"
	"github.com/hinshun/vt10x"
	"golang.org/x/term"

	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// Terminal is a terminal on which a program runs. Its methods may be called from several
// goroutines, except End, which ends it.
type Terminal struct {
	master, slave *os.File
	emulator      vt10x.Terminal
	before        *term.State
	cmd           *exec.Cmd
	ended         chan error
	read          sync.WaitGroup

	mu  sync.Mutex
	all strings.Builder // everything that was printed
}

// Start runs a program on a new terminal of that many columns and rows. The terminal is the
// program's standard input, output and error, and its controlling one. End has to be called, also
// after Kill.
func Start(cmd *exec.Cmd, columns, rows int) (*Terminal, error) {
	master, slave, err := pty.Open()
	if err != nil {
		return nil, err
	}
	t := &Terminal{master: master, slave: slave, cmd: cmd, ended: make(chan error, 1)}
	t.emulator = vt10x.New(vt10x.WithSize(columns, rows), vt10x.WithWriter(discard{}))
	if err := t.Resize(columns, rows); err != nil {
		return nil, err
	}
	if t.before, err = term.GetState(int(slave.Fd())); err != nil {
		return nil, err
	}
	t.read.Go(t.copy)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = controlling()
	if err := cmd.Start(); err != nil {
		t.close()
		return nil, err
	}
	go func() { t.ended <- cmd.Wait() }()
	return t, nil
}

// discard takes the answers of the emulator to questions of the program, which has none.
type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// copy shows what the program prints. It ends when both ends are closed. What was read before an
// error counts.
func (t *Terminal) copy() {
	buf := make([]byte, 4096)
	for {
		n, err := t.master.Read(buf)
		t.mu.Lock()
		_, _ = t.emulator.Write(buf[:n])
		t.all.Write(buf[:n])
		t.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// close closes both ends, and waits until everything that was printed is read.
func (t *Terminal) close() {
	_ = t.slave.Close()
	_ = t.master.Close()
	t.read.Wait()
}

// Resize gives the terminal another size, and tells the program.
func (t *Terminal) Resize(columns, rows int) error {
	t.mu.Lock()
	t.emulator.Resize(columns, rows)
	t.mu.Unlock()
	return pty.Setsize(t.master, &pty.Winsize{Rows: uint16(rows), Cols: uint16(columns)})
}

// Screen returns the lines that a person would see now, without white space at
// the ends of lines and without empty lines at the end.
func (t *Terminal) Screen() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := strings.Split(t.emulator.String(), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}

// Printed returns every byte that was printed.
func (t *Terminal) Printed() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.all.String()
}

// Type presses keys, which the program reads as the terminal's mode has them: Ctrl-C as "\x03" is
// a signal unless the mode is raw.
func (t *Terminal) Type(keys string) error {
	_, err := t.master.WriteString(keys)
	return err
}

// Await waits until the screen matches a regular expression, in which ^ and $ are the ends of a
// line. The error shows the screen. If the program ends meanwhile, what it printed last is looked
// at, and nothing more is waited for.
func (t *Terminal) Await(pattern string) error {
	want, err := regexp.Compile("(?m)" + pattern)
	if err != nil {
		return err
	}
	ctx, cancel := wait.Bounded()
	defer cancel()
	var ended error
	over := false
	if wait.Poll(ctx, func() bool {
		select {
		case ended = <-t.ended:
			t.ended <- ended
			over = true
			t.drain() // what was printed last
		default:
		}
		return want.MatchString(t.Screen()) || over
	}) && want.MatchString(t.Screen()) {
		return nil
	}
	if over {
		return fmt.Errorf("%q is not on the screen, and the program has ended (%w):\n%s", pattern, ended, t.Screen())
	}
	return fmt.Errorf("%q is not on the screen:\n%s", pattern, t.Screen())
}

// Signal sends the program a signal.
func (t *Terminal) Signal(s os.Signal) error { return t.cmd.Process.Signal(s) }

// Kill ends the program at once.
func (t *Terminal) Kill() error { return t.cmd.Process.Kill() }

// End waits for the program's end and returns its exit code. It is an error if the
// program does not end, or does not leave the terminal as it was.
func (t *Terminal) End() (int, error) {
	defer t.close()
	ctx, cancel := wait.Bounded()
	defer cancel()
	var err error
	select {
	case err = <-t.ended:
	case <-ctx.Done():
		_ = errors.Join(t.cmd.Process.Kill(), <-t.ended)
		return -1, fmt.Errorf("the program does not end:\n%s", t.Screen())
	}
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return -1, err
	}
	after, err := term.GetState(int(t.slave.Fd()))
	if err != nil {
		return -1, err
	}
	if *after != *t.before {
		return -1, fmt.Errorf("the terminal is not as it was: %v, was %v", *after, *t.before)
	}
	t.drain()
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case !t.emulator.CursorVisible():
		return -1, errors.New("the cursor is hidden")
	case t.emulator.Mode()&vt10x.ModeAltScreen != 0:
		return -1, errors.New("the other screen is still up")
	}
	return t.cmd.ProcessState.ExitCode(), nil
}

// drain waits until what the program printed has been read: a mark goes the same way.
func (t *Terminal) drain() {
	const mark = "\x1b[0m\x1b[m\x1b[0m"
	_, _ = t.slave.WriteString(mark)
	ctx, cancel := wait.Bounded()
	defer cancel()
	wait.Poll(ctx, func() bool { return strings.HasSuffix(t.Printed(), mark) })
}
