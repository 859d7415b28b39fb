// Package watch is the command that shows live, on the whole terminal, what goes on, and
// takes keys meanwhile. The picture is made by render.Board; what the keys do about an
// intent are choices of package pending.
//
// Two goroutines share the board, which is made for that: one follows what happens and
// feeds it, the other draws, reads keys and acts. Nothing is printed while the screen is
// up; what prints, such as show and logs, gets the terminal back for that time (aside).
// The picture is the same for a repository and an organisation. Its tests are watch.txtar
// in cmd/pfl-forge/testdata/script, and keys_test.go for the keys that are offered.
package watch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/target"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/console"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/local"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
	"github.com/pfl-forge/pfl-forge/natsd"
)

const watchHelp = `Show a live view of the intents and their children, the running attempts and their cost,
expected conflicts, and the latest events.

Keys: up and down select an intent, tab selects the next one that waits for you, enter
shows it, l shows its log; a approves, e answers, t retries, p pauses, u resumes; o also
shows finished intents; q quits. Quitting the view stops nothing else.`

// lookAgain is the interval of looking whether a run has begun.
const lookAgain = time.Second

// Command returns the command watch. It has no -o: without a terminal it is an
// error that names the commands for lines and for programs.
func Command(a *kit.App) *cobra.Command {
	return &cobra.Command{
		Use:   "watch",
		Short: "show a live view on the whole terminal",
		Long:  watchHelp,
		Args:  kit.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, ok := a.Terminal()
			if !ok {
				return errors.New("watch needs a terminal; use `pfl-forge status --watch` for lines, `pfl-forge logs -f -o ndjson` for programs, " +
					"or `pfl-forge status -o json` once")
			}
			defer c.Close()
			return watch(cmd.Context(), a, c)
		},
	}
}

// watching is a live view that has the terminal.
type watching struct {
	app    *kit.App
	board  *render.Board
	screen *console.Screen
	// prompt is a question, or the outcome of the last key; empty while the
	// keys are shown.
	prompt string
	// failed gets the error with which following ended.
	failed chan error
}

// watch shows the view until a person has enough, or the context ends.
//
// The terminal is given back in every case, also after a panic of the goroutine that
// follows, which becomes an error of the view. That goroutine has ended when watch returns.
func watch(ctx context.Context, a *kit.App, c *console.Console) error {
	project, follow, err := followed(ctx, a)
	if err != nil {
		return err
	}
	screen, err := c.Screen()
	if err != nil {
		return err
	}
	defer screen.Close()
	following, stop := context.WithCancel(ctx)
	w := &watching{app: a, board: render.NewBoard(project, c.Wake, keyFor), screen: screen, failed: make(chan error, 1)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer func() {
			if p := recover(); p != nil {
				w.fail(fmt.Errorf("%v", p))
			}
		}()
		if err := follow(following, w.board); err != nil && following.Err() == nil {
			w.fail(err)
		}
	}()
	defer func() { stop(); <-ended }()
	return kit.AsInterrupt(w.loop(ctx))
}

// fail ends the view with an error. It is called at most once.
func (w *watching) fail(err error) {
	w.failed <- err
	w.screen.Wake()
}

// followed returns the project to watch, and the function that feeds a board with what
// happens there until a context ends.
// The function may be called once; with an organisation it closes the connection at its end.
func followed(ctx context.Context, a *kit.App) (forge.ProjectID, func(context.Context, *render.Board) error, error) {
	if a.Remote() {
		t, err := target.Connect(ctx, a)
		if err != nil {
			return "", nil, err
		}
		return t.Project, func(ctx context.Context, b *render.Board) error {
			defer t.Close()
			return t.Observe(ctx, b)
		}, nil
	}
	repo, err := local.OpenRepository(ctx, a.Dir)
	if err != nil {
		return "", nil, err
	}
	return repo.Project, func(ctx context.Context, b *render.Board) error { return followRuns(ctx, a, repo, b) }, nil
}

// followRuns feeds a board with the runs of a repository, one after the other, and between
// them with how things stand.
//
// Between runs the store is only read when a command has written decisions since,
// because opening it starts a server. It returns nil when the context ends.
func followRuns(ctx context.Context, a *kit.App, repo *local.Repository, b *render.Board) error {
	var shown time.Time // when that was written which the board shows
	first := true
	for ctx.Err() == nil {
		err := local.ObserveRun(ctx, repo, b, a.Log())
		switch {
		case err == nil:
			first = true
			continue
		case !errors.Is(err, natsd.ErrNotRunning):
			return err
		}
		b.Idle(true)
		if written := repo.Written(); first || !written.Equal(shown) {
			if err := showState(ctx, a, b); err != nil {
				return err
			}
			first, shown = false, written
		}
		select {
		case <-ctx.Done():
		case <-time.After(lookAgain):
		}
	}
	return nil
}

// showState feeds a board with how things stand while no run goes on. A run may have
// begun meanwhile: then this process does not own the store, and the board is not idle.
func showState(ctx context.Context, a *kit.App, b *render.Board) error {
	t, err := target.Reader(ctx, a)
	if err != nil {
		return err
	}
	defer t.Close()
	all, err := t.Summaries(ctx)
	if err == nil {
		b.State(all)
		b.Idle(t.Owner)
	}
	return err
}

// loop draws the board, and does what keys say, until a person has enough.
// An error of following ends it at the next wake-up. The end of the input is a wish to quit.
func (w *watching) loop(ctx context.Context) error {
	for {
		k, pressed, err := w.next(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		select {
		case err := <-w.failed:
			return err
		default:
		}
		if !pressed {
			continue
		}
		w.prompt = ""
		if k.Is('q') {
			return nil
		}
		if err := w.press(ctx, k); err != nil {
			return err
		}
	}
}
