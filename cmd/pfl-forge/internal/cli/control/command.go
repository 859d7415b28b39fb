// Package control is the commands by which a person decides on intents, tasks or the whole
// project without being asked: approve, reject, retry, pause, resume, cancel, reflect.
//
// What each of them sends is the choice of the same name in package pending. Send is open
// to other packages: the commands of goals use it with a condition of their own.
//
// Each of them parses its arguments, and has one function send: decide for intents
// (decide.go), Send for intents, tasks or the project (send.go), and a list with a
// question first for --all (approveall.go, retryall.go). Whether something is possible
// the rules decide: here only mistakes in the command line are found. What became of each
// is printed as it comes; the exit code is 1 if one was refused. The tests are scripts in
// cmd/pfl-forge/testdata/script, such as approvals.txtar, pause.txtar and retryall.txtar.
package control

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/complete"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/pending"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/target"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
)

// PauseCommand returns the command that stops agents until a person resumes.
// It needs no question first, since resuming takes it back.
func PauseCommand(a *kit.App) *cobra.Command {
	var all bool
	var said pending.Said
	cmd := &cobra.Command{
		Use:   "pause <id>...",
		Short: "stop agents and keep their work, until you resume",
		Long: "Stop the agents of intents or tasks within seconds, and keep their work, until you resume. With --all, stop the agents of\n" +
			"the whole project, and start nothing new.",
		Example:           "  pfl-forge pause reset-link\n  pfl-forge pause reset-link-002\n  pfl-forge pause --all",
		ValidArgsFunction: complete.IntentsAndTasks(a, 0),
		RunE: func(cmd *cobra.Command, args []string) error {
			return Send(cmd.Context(), a, args, &Request{All: all, Choose: Always(pending.Pause, &said)})
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "the whole project")
	cmd.Flags().StringVar(&said.Text, "reason", "", "`reason` for the history")
	return cmd
}

// ResumeCommand returns the command that goes on with what is paused.
func ResumeCommand(a *kit.App) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:               "resume <id>...",
		Short:             "continue paused intents",
		Long:              "Continue paused intents or tasks where they stopped. With --all, continue the whole project.",
		Example:           "  pfl-forge resume reset-link\n  pfl-forge resume --all",
		ValidArgsFunction: complete.IntentsAndTasks(a, 0),
		RunE: func(cmd *cobra.Command, args []string) error {
			return Send(cmd.Context(), a, args, &Request{All: all, Choose: Always(pending.Resume, &pending.Said{})})
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "the whole project")
	return cmd
}

// CancelCommand returns the command that stops intents, tasks or everything for
// good. Named intents are cancelled without a question; only --all asks, as it
// ends more than a person may have in mind.
func CancelCommand(a *kit.App) *cobra.Command {
	var all, yes bool
	var said pending.Said
	cmd := &cobra.Command{
		Use:   "cancel <id>...",
		Short: "stop intents or tasks for good; merged changes stay",
		Long: "Stop intents or tasks for good. Merged changes stay; the commits of all attempts are kept until `pfl-forge clean`.\n" +
			"With --all, cancel everything in progress in the project, after confirmation.",
		Example:           "  pfl-forge cancel reset-link --reason \"not now\"\n  pfl-forge cancel reset-link-002\n  pfl-forge cancel --all",
		ValidArgsFunction: complete.IntentsAndTasks(a, 0),
		RunE: func(cmd *cobra.Command, args []string) error {
			if all && !yes {
				sure, err := sureToCancel(cmd.Context(), a)
				if err != nil || !sure {
					return err
				}
			}
			return Send(cmd.Context(), a, args, &Request{All: all, Choose: Always(pending.Cancel, &said)})
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "everything in the project, after confirmation")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "with --all: do not ask")
	cmd.Flags().StringVar(&said.Text, "reason", "", "`reason` for the history")
	return cmd
}

// sureToCancel asks whether everything is to be cancelled. The question has the
// number of intents that are open now. The target is closed while the person thinks.
func sureToCancel(ctx context.Context, a *kit.App) (bool, error) {
	c, ok := a.Terminal()
	if !ok {
		return false, kit.Usage(errors.New("--all asks for confirmation, and there is no terminal: give --yes, or the ids"))
	}
	defer c.Close()
	t, err := target.Reader(ctx, a)
	if err != nil {
		return false, err
	}
	all, err := t.Summaries(ctx)
	t.Close()
	if err != nil {
		return false, err
	}
	open := 0
	for i := range all {
		if !all[i].Status.Ended() {
			open++
		}
	}
	return a.Confirm(ctx, c, fmt.Sprintf("Cancel %s? Merged changes stay.", render.Count(open, "intent")))
}

// ReflectCommand returns the command that asks for a reflection now.
// It is sent to the project, whose machine decides when a reflection begins (ADR-0021).
func ReflectCommand(a *kit.App) *cobra.Command {
	return &cobra.Command{
		Use:   "reflect",
		Short: "look back at finished work and propose intents",
		Long: "Have an agent read the new observations and the history, and propose intents.\n" +
			"This happens automatically after each intent; the command asks for it now. Proposals are listed by `pfl-forge status` and,\n" +
			"unless their risk is low, by the inbox.",
		Args: kit.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return target.Once(cmd.Context(), a, func(t *target.Target) error {
				b := pending.Batch{App: a, GoesOn: true}
				b.Send(cmd.Context(), t, "reflection", "requested", forge.Event{To: t.Key("").ProjectKey(), Message: &forge.Reflect{}})
				return b.End(t)
			})
		},
	}
}
