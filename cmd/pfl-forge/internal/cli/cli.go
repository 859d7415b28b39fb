// Package cli is the command line of pfl-forge: it builds the command tree, runs what was
// typed, and turns the error that comes of it into a message and an exit code.
//
// Every noun has a package of its own below this one, with a Command function that makes
// its commands and everything behind them:
//
//	create, goal, audit    ask for a change
//	run                    work on everything that can go on
//	status, watch, web     lists, the live view, and the console in a browser
//	show, history, logs, costs, auditlog, settings
//	                       look at one intent, or back
//	inbox, answer, control decide on what waits for a person
//	clean, demo, doctor, intake, operator, admin
//	                       the rest
//
// They share packages that have no commands: kit (streams, flags, arguments, exit
// codes), target (whom a command talks to), document (what -o json and -o yaml print, and
// the same as text) and pending (a decision that waits for a person: what it is about,
// what can be done, and what each choice needs). A goal is an intent with criteria;
// goalview adds its iterations to what document says of an intent.
//
// Data goes to standard output, everything else to standard error. Only a person at a
// terminal is ever asked; elsewhere what is missing is an error that names it.
package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
)

// Main runs a command line and returns its exit code. It prints nothing but to out and
// errs, reads a person's answers from in, and reads the environment only with getenv; but
// it catches the process's signals while it runs.
func Main(args []string, in io.Reader, out, errs io.Writer, getenv func(string) string) int {
	a := &kit.App{In: in, Out: out, Err: errs, Getenv: getenv}
	ctx, stop := interruptible(errs)
	defer stop()
	root := newRoot(a)
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errs)
	called, err := root.ExecuteContextC(ctx)
	if err == nil {
		return int(kit.ExitOK)
	}
	code, message := verdict(ctx, called, err)
	if message != "" {
		fmt.Fprintf(errs, "pfl-forge: %s\n", a.Pasted(kit.Safe(message)))
	}
	return int(code)
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
					fmt.Fprintln(errs, "pfl-forge: Stopped. The next run picks up where this one left off.")
					os.Exit(int(kit.ExitInterrupted))
				}
				cancel(kit.ErrInterrupted)
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
