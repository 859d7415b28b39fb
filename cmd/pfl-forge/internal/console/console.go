// Package console reads keys and lines from a terminal and draws whole screens on it.
//
// The terminal is in raw mode only while something is read or a screen is up, and is
// put back as it was whatever ends that: the end, an error, Ctrl-C, a signal that ends
// the context, or a panic.
package console

import (
	"context"
	"errors"
	"io"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// ErrInterrupted says that Ctrl-C was pressed.
var ErrInterrupted = errors.New("interrupted")

// Console is a terminal with a person at it. Its methods must not be called by two
// goroutines at once, except Wake.
type Console struct {
	in, out *os.File
	// pending has bytes that were read and not decoded yet: keys that were typed ahead, and the
	// beginning of a sequence.
	wakes, wake *os.File // the two ends of a pipe
	woken       atomic.Bool
	pending     []byte // read, and not decoded yet
}

// Open returns the terminal behind two streams; false if one of them is not a terminal. The caller
// closes it. Nothing is changed at the terminal before something is read or a screen is up.
func Open(in io.Reader, out io.Writer) (*Console, bool) {
	input, ok := in.(*os.File)
	if !ok || !term.IsTerminal(int(input.Fd())) {
		return nil, false
	}
	output, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(output.Fd())) {
		return nil, false
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, false
	}
	return &Console{in: input, out: output, wakes: r, wake: w}, true
}

// Close lets go of the terminal. It does not close the streams, which are the process's own.
func (c *Console) Close() {
	_ = c.wakes.Close()
	_ = c.wake.Close()
}

// Wake makes a Screen's Next return. It may be called by any goroutine, also after
// Close.
func (c *Console) Wake() {
	if c.woken.CompareAndSwap(false, true) { // so the pipe is never full
		_, _ = c.wake.Write([]byte{0})
	}
}

// Size returns the columns and rows of the terminal, at least 1 each; 80 and 24 where it does not
// say.
func (c *Console) Size() (columns, rows int) {
	columns, rows, err := term.GetSize(int(c.out.Fd()))
	if err != nil || columns <= 0 || rows <= 0 {
		return 80, 24
	}
	return columns, rows
}

// Key waits for a key. Errors: ErrInterrupted for Ctrl-C, io.EOF for Ctrl-D or a
// terminal that is gone, the end of ctx.
func (c *Console) Key(ctx context.Context) (Key, error) {
	restore, err := c.raw()
	if err != nil {
		return Key{}, err
	}
	defer restore()
	for {
		k, woken, err := c.next(ctx, -1)
		if err != nil || !woken {
			return k, err
		}
	}
}

// raw switches to raw mode, in which the terminal passes on each key and shows none, and returns
// the function that switches back. That one is called whatever happens in between.
func (c *Console) raw() (func(), error) {
	fd := int(c.in.Fd())
	before, err := term.MakeRaw(fd)
	if err != nil {
		return nil, err
	}
	return func() { _ = term.Restore(fd, before) }, nil
}

// next waits for a key or for Wake, for at most some time if that is not negative. Woken is true
// without a key, also when the time is over. Keys that were typed ahead come first. Errors: as
// Key.
func (c *Console) next(ctx context.Context, most time.Duration) (k Key, woken bool, err error) {
	for {
		if k, n := decode(c.pending); n > 0 {
			c.pending = c.pending[n:]
			if k.Name == CtrlC {
				return k, false, ErrInterrupted
			}
			if k.Name == CtrlD {
				return k, false, io.EOF
			}
			return k, false, nil
		}
		woken, err := c.fill(ctx, most)
		if woken || err != nil {
			return Key{}, woken, err
		}
	}
}

// escapeTime is how long a lone ESC waits for the rest of a sequence. Terminals send a sequence at
// once; a person cannot type its second key so fast.
const escapeTime = 50 * time.Millisecond

// fill reads more bytes into pending. It returns true if it was woken, or if the time is over. A
// context that ends wakes it as well, and its cause is the error. io.EOF says that the terminal is
// gone.
func (c *Console) fill(ctx context.Context, most time.Duration) (woken bool, err error) {
	defer context.AfterFunc(ctx, c.Wake)()
	if err := context.Cause(ctx); err != nil {
		return false, err
	}
	if len(c.pending) > 0 { // the beginning of a sequence, or the Escape key
		most = escapeTime
	}
	ready, wakes, err := c.poll(most)
	switch {
	case err != nil:
		return false, err
	case context.Cause(ctx) != nil:
		return false, context.Cause(ctx)
	case ready:
		var buf [256]byte
		n, err := unix.Read(int(c.in.Fd()), buf[:])
		if n <= 0 || err != nil {
			return false, io.EOF
		}
		c.pending = append(c.pending, buf[:n]...)
		return false, nil
	case wakes:
		return true, nil
	case len(c.pending) > 0:
		c.pending = append(c.pending, 0) // ends the sequence: it was the Escape key
		return false, nil
	}
	return true, nil
}

// poll waits for input or for Wake, or until the time is over, which is neither. It empties the
// pipe: however often Wake was called, it is one wake.
func (c *Console) poll(most time.Duration) (ready, woken bool, err error) {
	timeout := -1
	if most >= 0 {
		timeout = int(most.Milliseconds())
	}
	fds := []unix.PollFd{{Fd: int32(c.in.Fd()), Events: unix.POLLIN}, {Fd: int32(c.wakes.Fd()), Events: unix.POLLIN}}
	for {
		_, err = unix.Poll(fds, timeout)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		return false, false, err
	}
	if fds[1].Revents != 0 {
		var drain [64]byte
		_, _ = unix.Read(int(c.wakes.Fd()), drain[:])
		c.woken.Store(false)
		woken = true
	}
	return fds[0].Revents != 0, woken, nil
}
