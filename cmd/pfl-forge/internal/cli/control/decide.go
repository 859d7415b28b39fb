package control

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/complete"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/pending"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/target"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
	"github.com/pfl-forge/pfl-forge/internal/pattern"
)

// commit matches the name of a commit, or as much of it as names one.
var commit = pattern.New(`^[0-9a-f]{12,64}$`)

// ApproveCommand returns the command that lets intents that wait for approval go on. Without a
// hash it approves what waits at that moment. Whoever looked at something before, a script above
// all, names the hash of what was seen: then nothing is approved that came to be meanwhile.
func ApproveCommand(a *kit.App) *cobra.Command {
	var plan string
	var all, yes bool
	cmd := &cobra.Command{
		Use:   "approve <id>...",
		Short: "approve intents that wait for approval",
		Long: "Approve the current plans of intents that wait for approval.\n" +
			"One that waits before it is analyzed has no plan yet: approving it lets this text be analyzed; you are asked again about the plan.\n" +
			"With --plan, approve exactly that plan, as the inbox shows it; if it has changed since, nothing happens.\n" +
			"With --all, list everything that waits for approval and, after confirmation, approve it as listed.",
		Example:           "  pfl-forge approve reset-link\n  pfl-forge approve reset-link --plan 714fe29f3703\n  pfl-forge approve --all",
		ValidArgsFunction: complete.Intents(a, pending.Approve.Fits, 0),
		RunE: func(cmd *cobra.Command, args []string) error {
			if all {
				if len(args) > 0 || plan != "" {
					return kit.Usage(errors.New("--all takes no ids and no --plan"))
				}
				return approveAll(cmd.Context(), a, yes)
			}
			if len(args) == 0 {
				return kit.Usage(kit.MissingID("the id of an intent"))
			}
			if plan != "" && len(args) > 1 {
				return kit.Usage(errors.New("--plan takes exactly one intent"))
			}
			return decide(cmd.Context(), a, args, pending.Approve, pending.Said{Plan: plan})
		},
	}
	cmd.Flags().StringVar(&plan, "plan", "", "`hash` of the plan to approve; default: of the plan that is there now")
	cmd.Flags().BoolVar(&all, "all", false, "everything that waits for approval, after confirmation")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "with --all: do not ask")
	return cmd
}

// RequestChangesCommand returns the command by which a plan or a change that
// waits for approval is made again, with a person's words.
func RequestChangesCommand(a *kit.App) *cobra.Command {
	var said pending.Said
	var format render.Format
	cmd := &cobra.Command{
		Use:   "request-changes <id> <words>",
		Short: "ask for changes to a plan or a change that waits for you",
		Long: "Have a plan, or a change, that waits for approval made again in the same conversation, with your words. It waits for approval again;\n" +
			"earlier approvals no longer count. It uses no attempt, and may be done ten times in a run.\n" +
			"With --hash, ask for changes to exactly what has this hash, as the inbox shows it; if it has changed since, nothing happens.\n" +
			"For a change that its reviewers disagree about, the hash is its commit, as the question shows it.\n" +
			"The id of a task asks for changes to that task's change alone.",
		Example: "  pfl-forge request-changes reset-link --hash 714fe29f3703 'keep the old route'\n" +
			"  pfl-forge request-changes reset-link-002 'say why in the commit'",
		Args:              kit.Between(2, 2, "the id of an intent or a task, or the words on what to change,"),
		ValidArgsFunction: complete.IntentsAndTasks(a, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			said.Text = args[1]
			return Send(cmd.Context(), a, args[:1], &Request{Format: format, Choose: shown(&said)})
		},
	}
	cmd.Flags().StringVar(&said.Plan, "hash", "", "`hash` of what is to be changed; default: of what waits now")
	kit.OutputFlag(cmd, &format)
	return cmd
}

// shown returns the Chooser of a wish for changes: of what waits now, unless the
// person says of what. Of a change that its reviewers disagree about there is no hash
// in the summary but the plan's, which the rules refuse with the commit to name. The
// hash of now is that of the view which is read right before the wish is sent.
func shown(said *pending.Said) Chooser {
	return func(v *forge.View) (*pending.Choice, pending.Said, error) {
		of := *said
		if of.Plan == "" && v != nil {
			of.Plan = v.Summary.Plan
		}
		return pending.RequestChanges, of, nil
	}
}

// RejectCommand returns the command that ends intents that are not wanted.
// What was merged of them stays merged: a rejection takes nothing back.
func RejectCommand(a *kit.App) *cobra.Command {
	var said pending.Said
	cmd := &cobra.Command{
		Use:               "reject <id>...",
		Short:             "reject intents that wait for you",
		Args:              kit.AtLeast(1, "the id of an intent"),
		ValidArgsFunction: complete.Intents(a, pending.Waits, 0),
		RunE: func(cmd *cobra.Command, args []string) error {
			return decide(cmd.Context(), a, args, pending.Reject, said)
		},
	}
	cmd.Flags().StringVar(&said.Text, "reason", "", "`reason` for the history")
	return cmd
}

// RetryCommand returns the command that runs intents again that failed, or wait for
// files or for money. The runner knows which of these it is; the command sends the same
// wish for all of them, with a budget and words for the agents if they were given.
func RetryCommand(a *kit.App) *cobra.Command {
	var said pending.Said
	var f retryFlags
	cmd := &cobra.Command{
		Use:   "retry <id>...",
		Short: "retry what failed or is waiting for you",
		Long: "Retry what failed, or what waits for your files or for budget. An intent that waits for budget or approval then follows the\n" +
			"project's policy as it is now on the base branch.\n" +
			"Where someone else pushed to the branch of a pull request, the original change is proposed again once the branch is restored, or gone.\n" +
			"With --adopt, the commit seen there becomes the change: it is rebased onto the tip, verified and reviewed, and then replaces what is on the branch.\n" +
			"With --all, list every intent that failed, for a reason or since a time if these are given, and retry them after confirmation.\n" +
			"Reasons are those of the guide on failures, such as auth or timeout; credentials stands for auth, dependency for what another intent blocked.",
		Example: "  pfl-forge retry reset-link --with 'keep the old route'\n  pfl-forge retry reset-link --adopt 3f786850e387\n" +
			"  pfl-forge retry --all --reason credentials --since 10:00\n  pfl-forge retry --all --reason timeout --dry-run -o json",
		ValidArgsFunction: complete.Intents(a, pending.Retry.Fits, 0),
		RunE: func(cmd *cobra.Command, args []string) error {
			said.Adopt = strings.ToLower(strings.TrimSpace(said.Adopt))
			switch narrowed := f.reason != "" || f.since != "" || f.yes || f.dryRun || cmd.Flags().Changed("output"); {
			case cmd.Flags().Changed("adopt") && (f.all || len(args) != 1):
				return kit.Usage(errors.New("--adopt goes with one id"))
			case cmd.Flags().Changed("adopt") && !commit.MatchString(said.Adopt): // an empty one would have the change as it was go on
				return kit.Usage(fmt.Errorf("--adopt %.80q is not a commit: give at least the first 12 digits of its id, as pfl-forge status shows it", said.Adopt))
			case f.all && len(args) > 0:
				return kit.Usage(errors.New("--all takes no ids"))
			case f.all:
				return retryAll(cmd.Context(), a, &f, said)
			case narrowed:
				return kit.Usage(errors.New("--reason, --since, --yes, --dry-run and --output go with --all"))
			case len(args) == 0:
				return kit.Usage(kit.MissingID("the id of an intent, or --all"))
			}
			return decide(cmd.Context(), a, args, pending.Retry, said)
		},
	}
	cmd.Flags().StringVar(&said.Text, "with", "", "`instructions` for the agents")
	cmd.Flags().Float64Var(&said.BudgetUSD, "budget", 0, "new total budget of the intent, in `USD`")
	cmd.Flags().StringVar(&said.Adopt, "adopt", "", "the `commit` on the branch of a pull request that becomes the change; at least 12 digits")
	cmd.Flags().BoolVar(&f.all, "all", false, "everything that failed or waits for a red base branch, after confirmation")
	cmd.Flags().StringVar(&f.reason, "reason", "", "with --all: only what failed for this `reason`")
	cmd.Flags().StringVar(&f.since, "since", "", "with --all: only what failed since a `time`, such as 10:00 or 2h")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "with --all: list it, and retry nothing")
	cmd.Flags().BoolVarP(&f.yes, "yes", "y", false, "with --all: do not ask")
	kit.OutputFlag(cmd, &f.format)
	return cmd
}

// decide sends the same choice for each intent. One that is refused does not keep the
// others back. An approval without a hash is given the one of the plan that is there now,
// so that the journal says which plan it was. All ids are parsed before the first is sent.
func decide(ctx context.Context, a *kit.App, args []string, c *pending.Choice, said pending.Said) error {
	ids, err := kit.IntentIDs(args)
	if err != nil {
		return err
	}
	return target.Once(ctx, a, func(t *target.Target) error {
		b := pending.Batch{App: a, GoesOn: c.GoesOn}
		for _, id := range ids {
			what := said
			if c == pending.Approve && what.Plan == "" {
				if v, err := t.View(ctx, id); err == nil { // else the answer to the approval says what is wrong
					what.Plan = v.Summary.Plan
				}
			}
			b.Send(ctx, t, string(id), c.Done, c.Event(t.Key(id), what))
		}
		return b.End(t)
	})
}
