package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
)

// scope is what cancel, pause and resume are about.
type scope struct {
	all, yes bool
	reason   string
	format   render.Format
}

// wish is what a person wants of an intent, a task or the project.
type wish struct {
	done string // what has become of it once it is applied
	ev   forge.Event
}

// wishes makes a wish for an intent, or a task of it; the view is nil for the project.
type wishes func(v *forge.View, task forge.TaskID) (wish, error)

// ruled is what became of a wish, as programs read it.
type ruled struct {
	ID       string         `json:"id"               yaml:"id"`
	Decision forge.Decision `json:"decision"         yaml:"decision"` // empty: no runner has decided yet
	Reason   string         `json:"reason,omitempty" yaml:"reason,omitempty"`
}

func (a *app) pauseCommand() *cobra.Command {
	var s scope
	cmd := &cobra.Command{
		Use:   "pause <id>...",
		Short: "stop agents and keep what they did, until you resume",
		Long: "Stop the agents of intents or tasks, within seconds, and keep what they did, until you resume. With --all those of the\n" +
			"whole project stop, and nothing new begins.",
		Example:           "  pfl-forge pause reset-link\n  pfl-forge pause reset-link-002\n  pfl-forge pause --all",
		ValidArgsFunction: a.completeTasks(0),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.control(cmd.Context(), args, &s, func(_ *forge.View, task forge.TaskID) (wish, error) {
				return wish{"paused", forge.Event{Message: &forge.Pause{Reason: s.reason, Task: task}}}, nil
			})
		},
	}
	cmd.Flags().BoolVar(&s.all, "all", false, "the whole project")
	cmd.Flags().StringVar(&s.reason, "reason", "", "why, for the history")
	return cmd
}

func (a *app) resumeCommand() *cobra.Command {
	var s scope
	cmd := &cobra.Command{
		Use:               "resume <id>...",
		Short:             "go on with what is paused",
		Long:              "Go on with intents or tasks that are paused, where they stopped. With --all the whole project goes on.",
		Example:           "  pfl-forge resume reset-link\n  pfl-forge resume --all",
		ValidArgsFunction: a.completeTasks(0),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.control(cmd.Context(), args, &s, resumed)
		},
	}
	cmd.Flags().BoolVar(&s.all, "all", false, "the whole project")
	return cmd
}

func (a *app) cancelCommand() *cobra.Command {
	var s scope
	cmd := &cobra.Command{
		Use:   "cancel <id>...",
		Short: "stop intents or tasks for good; what is integrated stays",
		Long: "Stop intents or tasks for good. What is integrated stays; the commits of all attempts are kept until `pfl-forge clean`.\n" +
			"With --all everything that is under way in the project is cancelled, after a question.",
		Example:           "  pfl-forge cancel reset-link --reason \"not now\"\n  pfl-forge cancel reset-link-002\n  pfl-forge cancel --all",
		ValidArgsFunction: a.completeTasks(0),
		RunE: func(cmd *cobra.Command, args []string) error {
			if s.all {
				sure, err := a.sureToCancel(cmd.Context(), &s)
				if err != nil || !sure {
					return err
				}
			}
			return a.control(cmd.Context(), args, &s, s.cancelled)
		},
	}
	cmd.Flags().BoolVar(&s.all, "all", false, "everything in the project; asks first")
	cmd.Flags().BoolVarP(&s.yes, "yes", "y", false, "with --all: do not ask")
	cmd.Flags().StringVar(&s.reason, "reason", "", "why, for the history")
	return cmd
}

func resumed(_ *forge.View, task forge.TaskID) (wish, error) {
	return wish{"resumed", forge.Event{Message: &forge.Resume{Task: task}}}, nil
}

func (s *scope) cancelled(_ *forge.View, task forge.TaskID) (wish, error) {
	return wish{"cancelled", forge.Event{Message: &forge.Cancel{Reason: s.reason, Task: task}}}, nil
}

// sureToCancel asks whether everything is to be cancelled.
func (a *app) sureToCancel(ctx context.Context, s *scope) (bool, error) {
	if s.yes {
		return true, nil
	}
	c, ok := a.terminal()
	if !ok {
		return false, usageError{errors.New("--all asks on a terminal, and there is none: give --yes, or the ids")}
	}
	defer c.Close()
	t, err := a.reader(ctx)
	if err != nil {
		return false, err
	}
	all, err := t.summaries(ctx)
	t.close()
	if err != nil {
		return false, err
	}
	open := 0
	for i := range all {
		if !all[i].Status.Ended() {
			open++
		}
	}
	return a.confirm(ctx, c, fmt.Sprintf("cancel %s?", render.Count(open, "intent")))
}

// control sends wishes to the intents or tasks that are named, or to the project. One
// that is refused does not keep the others back.
func (a *app) control(ctx context.Context, args []string, s *scope, want wishes) error {
	switch {
	case s.all && len(args) > 0:
		return usageError{errors.New("--all goes without ids")}
	case !s.all && len(args) == 0:
		return usageError{missing("the id of an intent or a task")}
	}
	return a.once(ctx, func(t *target) error {
		r := rulings{app: a, format: s.format}
		if s.all {
			w, err := want(nil, "")
			if err != nil {
				return err
			}
			w.ev.To = t.key("").Lane()
			r.send(ctx, t, "the project", w)
		}
		for _, arg := range args {
			v, task, err := t.find(ctx, arg)
			if err != nil {
				r.errs = append(r.errs, err)
				continue
			}
			var id forge.TaskID
			if task != nil {
				id = task.ID
			}
			w, err := want(v, id)
			if err != nil {
				r.errs = append(r.errs, err)
				continue
			}
			w.ev.To = t.key(v.Intent.ID)
			r.send(ctx, t, arg, w)
		}
		return r.end(t)
	})
}

// rulings collects what became of wishes.
type rulings struct {
	app    *app
	format render.Format
	list   []ruled
	errs   []error
	goesOn bool // somebody has to go on with what was decided
}

// send has a wish decided, and says what became of it unless that is for programs.
func (r *rulings) send(ctx context.Context, t *target, who string, w wish) {
	ruling, err := t.ask(ctx, w.ev)
	switch {
	case err != nil:
		err = fmt.Errorf("%s: %w", who, err)
	case r.format.Data() && ruling.Decision != forge.Refused:
		r.list = append(r.list, ruled{who, ruling.Decision, ruling.Reason})
	default:
		err = r.app.reportOn(who, w.done, ruling)
	}
	r.errs = append(r.errs, err)
	r.goesOn = r.goesOn || forge.As[*forge.Resume](w.ev.Message) != nil || forge.As[*forge.Retry](w.ev.Message) != nil
}

// end says who goes on, or what was refused.
func (r *rulings) end(t *target) error {
	if r.format.Data() && len(r.list) > 0 {
		if err := r.format.Write(r.app.out, r.list); err != nil {
			return err
		}
	}
	if err := errors.Join(r.errs...); err != nil || !r.goesOn {
		return err
	}
	r.app.say("%s", t.next())
	return nil
}

func (a *app) reflectCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "reflect",
		Short: "look back at what happened and propose what to do about it",
		Long: "Have the observations read that no reflection has read yet, in the light of what happened, and get intents proposed.\n" +
			"That happens by itself after each intent; this asks for it now. What is proposed is in `pfl-forge status` and, unless its\n" +
			"risk is low, in the inbox.",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.once(cmd.Context(), func(t *target) error {
				r := rulings{app: a, goesOn: true}
				r.send(cmd.Context(), t, "reflection", wish{"asked for", forge.Event{To: t.key("").Lane(), Message: &forge.Reflect{}}})
				return r.end(t)
			})
		},
	}
}
