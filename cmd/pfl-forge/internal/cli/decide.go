package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pfl-forge/pfl-forge"
)

func (a *app) approveCommand() *cobra.Command {
	var plan string
	var all, yes bool
	cmd := &cobra.Command{
		Use:   "approve <id>...",
		Short: "let intents that wait for approval go on",
		Long: "Let intents that wait for approval go on with the plan that they have.\n" +
			"With --plan exactly that plan is approved, as the inbox shows it; if it has changed since, nothing happens.\n" +
			"With --all everything that waits for approval is listed and, after a question, approved as listed.",
		Example:           "  pfl-forge approve reset-link\n  pfl-forge approve reset-link --plan 714fe29f3703\n  pfl-forge approve --all",
		ValidArgsFunction: a.complete(waitsFor(forge.WaitingApproval), 0),
		RunE: func(cmd *cobra.Command, args []string) error {
			if all {
				if len(args) > 0 || plan != "" {
					return usageError{errors.New("--all goes without ids and without --plan")}
				}
				return a.approveAll(cmd.Context(), yes)
			}
			if len(args) == 0 {
				return usageError{missing("the id of an intent")}
			}
			if plan != "" && len(args) > 1 {
				return usageError{errors.New("--plan names the plan of one intent")}
			}
			return a.decide(cmd.Context(), args, "approved", forge.Event{Message: &forge.Approve{Plan: plan}})
		},
	}
	cmd.Flags().StringVar(&plan, "plan", "", "`hash` of the plan that is approved")
	cmd.Flags().BoolVar(&all, "all", false, "everything that waits for approval; asks first")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "with --all: do not ask")
	return cmd
}

func (a *app) rejectCommand() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:               "reject <id>...",
		Short:             "end intents that wait for you, because they are not wanted",
		Args:              atLeast(1, "the id of an intent"),
		ValidArgsFunction: a.complete(needsPerson, 0),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.decide(cmd.Context(), args, "rejected", forge.Event{Message: &forge.Reject{Reason: reason}})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the history")
	return cmd
}

func (a *app) retryCommand() *cobra.Command {
	var wish forge.Retry
	cmd := &cobra.Command{
		Use:   "retry <id>...",
		Short: "run what failed, or waits for your files or for money, again",
		Long: "Run what failed, or waits for your files or for money, again. An intent that waits for money or for approval goes on by the\n" +
			"project's policy as it is now on the base branch.",
		Args: atLeast(1, "the id of an intent"),
		ValidArgsFunction: a.complete(func(s *forge.Summary) bool {
			return s.Waiting == forge.WaitingFailed || s.Waiting == forge.WaitingDirty || s.Waiting == forge.WaitingBudget
		}, 0),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.decide(cmd.Context(), args, "retried", forge.Event{Message: &wish})
		},
	}
	cmd.Flags().StringVar(&wish.Instructions, "with", "", "`instructions` for the agents")
	cmd.Flags().Float64Var(&wish.BudgetUSD, "budget", 0, "what the intent may cost in all from now on, in `USD`")
	return cmd
}

// decide sends the same wish for each intent. One that is refused does not keep
// the others back.
func (a *app) decide(ctx context.Context, args []string, done string, ev forge.Event) error {
	ids, err := intentIDs(args)
	if err != nil {
		return err
	}
	return a.once(ctx, func(t *target) error {
		r := rulings{app: a, goesOn: forge.As[*forge.Reject](ev.Message) == nil}
		for _, id := range ids {
			ev.To = t.key(id)
			r.send(ctx, t, string(id), wish{done, ev})
		}
		return r.end(t)
	})
}

// report prints a ruling; a refusal is an error.
func (a *app) report(id forge.IntentID, done string, r forge.Ruling) error {
	return a.reportOn(string(id), done, r)
}

func (a *app) reportOn(who, done string, r forge.Ruling) error {
	switch r.Decision {
	case forge.Applied:
		fmt.Fprintf(a.out, "%s %s\n", who, done)
	case forge.Ignored:
		fmt.Fprintf(a.out, "%s unchanged: %s\n", who, r.Reason)
	case forge.Refused:
		return fmt.Errorf("%s: %s", who, r.Reason)
	default:
		fmt.Fprintf(a.out, "%s accepted; no runner has decided yet\n", who)
	}
	return nil
}
