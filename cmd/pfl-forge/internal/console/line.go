package console

import (
	"context"
	"errors"
	"io"
	"unicode/utf8"

	"github.com/pfl-forge/pfl-forge/internal/term"
	xterm "golang.org/x/term"
)

// Line asks for a line of text, which can be edited, and returns it without its end. Errors: as
// Key; io.EOF means that the person wants to give none. A pasted line counts as one that was
// typed. Bytes that are no text are replaced, so that the answer can be stored and shown.
func (c *Console) Line(ctx context.Context, prompt string) (string, error) {
	restore, err := c.raw()
	if err != nil {
		return "", err
	}
	defer restore()
	keys := &typed{ctx: ctx, console: c}
	t := xterm.NewTerminal(struct {
		io.Reader
		io.Writer
	}{keys, c.out}, prompt)
	_ = t.SetSize(c.Size())
	text, err := t.ReadLine()
	if errors.Is(err, xterm.ErrPasteIndicator) {
		err = nil
	}
	if keys.err != nil {
		err = keys.err
	}
	if err != nil {
		_, _ = io.WriteString(c.out, "\r\n")
	}
	if !utf8.ValidString(text) {
		text = term.Sanitize(text)
	}
	return text, err
}

// typed gives the line editor one byte at a time, so that it takes nothing that was
// typed for later.
type typed struct {
	ctx     context.Context //nolint:containedctx // of one call of Line
	console *Console
	err     error
}

// Read returns one byte, and blocks until it was typed. Ctrl-C ends the line with
// ErrInterrupted.
func (t *typed) Read(p []byte) (int, error) {
	for len(t.console.pending) == 0 {
		if _, t.err = t.console.fill(t.ctx, -1); t.err != nil {
			return 0, t.err
		}
	}
	p[0] = t.console.pending[0]
	t.console.pending = t.console.pending[1:]
	if p[0] == 0x03 {
		t.err = ErrInterrupted
		return 0, t.err
	}
	return 1, nil
}
