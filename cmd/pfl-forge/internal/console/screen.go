package console

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// Screen is the whole terminal, drawn anew at will. It keeps what it shows, so that only lines
// that changed are written: over a slow connection a screen of a hundred lines does not flicker.
type Screen struct {
	*Console
	restore func()
	stop    func()
	shown   []string
	columns int
	rows    int
}

// What brings up the other screen without a cursor, and what undoes that.
const (
	enter = "\x1b[?1049h\x1b[?25l\x1b[2J\x1b[H"
	leave = "\x1b[0m\x1b[?25h\x1b[?1049l"
)

// Screen takes over the terminal until Close. It shows the terminal's other screen, so that what
// was printed before is there again afterwards. A change of the terminal's size makes Next return.
func (c *Console) Screen() (*Screen, error) {
	restore, err := c.raw()
	if err != nil {
		return nil, err
	}
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	ended := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-resized:
				c.Wake()
			case <-ended:
				return
			}
		}
	}()
	_, err = c.out.WriteString(enter)
	s := &Screen{Console: c, restore: restore, stop: func() {
		signal.Stop(resized)
		close(ended)
		<-done
	}}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Close gives the terminal back as it was. Calling it again does nothing.
func (s *Screen) Close() {
	if s.restore == nil {
		return
	}
	_, _ = s.out.WriteString(leave)
	s.restore()
	s.restore = nil
	s.stop()
}

// Next waits for a key, for Wake, for another size, or for some time. It returns false
// if it was no key.
func (s *Screen) Next(ctx context.Context, most time.Duration) (Key, bool, error) {
	k, woken, err := s.next(ctx, most)
	return k, !woken && err == nil, err
}

// Draw shows lines from the top, as many as there is room for. They must fit and hold
// nothing but text and colours. Only what changed is written.
func (s *Screen) Draw(lines []string) {
	columns, rows := s.Size()
	var b bytes.Buffer
	if columns != s.columns || rows != s.rows {
		s.columns, s.rows, s.shown = columns, rows, nil
		b.WriteString("\x1b[2J")
	}
	lines = lines[:min(len(lines), rows)]
	for i := range max(len(lines), len(s.shown)) {
		line := ""
		if i < len(lines) {
			line = lines[i]
		}
		if i < len(s.shown) && s.shown[i] == line || i >= len(s.shown) && line == "" {
			continue
		}
		fmt.Fprintf(&b, "\x1b[%d;1H%s\x1b[0m\x1b[K", i+1, line)
	}
	s.shown = append([]string(nil), lines...)
	if b.Len() > 0 {
		_, _ = s.out.Write(b.Bytes())
	}
}

// Redraw makes the next Draw write everything.
func (s *Screen) Redraw() { s.columns = 0 }

// Pause gives the terminal back while f runs, and takes it over again.
func (s *Screen) Pause(f func()) error {
	_, _ = s.out.WriteString(leave)
	s.restore()
	f()
	restore, err := s.raw()
	if err != nil {
		s.restore = func() {}
		return err
	}
	s.restore = restore
	s.Redraw()
	_, err = s.out.WriteString(enter)
	return err
}
