// Package cli is the command line: what a person types, what they read, and the
// exit codes.
//
// Data goes to standard output, everything else to standard error. Only a person at a
// terminal is ever asked; elsewhere what is missing is an error that names it.
package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"

	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
)

// app is what all commands share.
type app struct {
	in       io.Reader
	out, err io.Writer
	getenv   func(string) string

	dir       string // of the repository, or a folder in it
	server    string // of an organisation; empty: the repository's own
	tokenFile string
	creds     string
	profile   string // name of a NATS context
	project   string
	verbose   bool
}

// Main runs a command line and returns its exit code.
func Main(args []string, in io.Reader, out, errs io.Writer, getenv func(string) string) int {
	a := &app{in: in, out: out, err: errs, getenv: getenv}
	ctx, stop := interruptible(errs)
	defer stop()
	root := a.root()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errs)
	called, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitOK
	}
	code, message := verdict(ctx, called, err)
	if message != "" {
		fmt.Fprintf(errs, "pfl-forge: %s\n", safe(message))
	}
	return code
}

// interruptible returns a context that the first SIGINT, SIGTERM or SIGHUP ends;
// the second one ends the process.
func interruptible(errs io.Writer) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	done := make(chan struct{})
	go func() {
		for range 2 {
			select {
			case <-signals:
				if ctx.Err() != nil {
					fmt.Fprintln(errs, "pfl-forge: ended at once; the next run goes on")
					os.Exit(exitInterrupted)
				}
				cancel(errInterrupted)
			case <-done:
				return
			}
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(done)
		cancel(nil)
	}
}

// log returns the logger of a command that has no log file.
func (a *app) log() *slog.Logger {
	if !a.verbose {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(a.err, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// say tells a person something that is no data.
func (a *app) say(format string, args ...any) {
	fmt.Fprintf(a.err, format+"\n", args...)
}

// width returns how wide a stream's terminal is, 0 if it is none.
func width(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0
	}
	columns, _, err := term.GetSize(int(f.Fd()))
	if err != nil || columns <= 0 {
		return 80
	}
	return columns
}

// plain says that a terminal can or should do nothing but show lines.
func (a *app) plain() bool {
	return a.getenv("TERM") == "dumb" || a.getenv("CI") != ""
}

// style returns the colours for a stream.
func (a *app) style(w io.Writer) render.Style {
	return render.Style{Colour: width(w) > 0 && !a.plain() && a.getenv("NO_COLOR") == ""}
}

// live returns the view of what goes on.
func (a *app) live() *render.Live {
	screen := render.Screen{Out: a.err, Style: a.style(a.err)}
	if !a.plain() && width(a.err) > 0 {
		screen.Width = func() int { return width(a.err) }
	}
	return render.NewLive(screen)
}
