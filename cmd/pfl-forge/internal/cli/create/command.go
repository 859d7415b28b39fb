// Package create is the command that asks for a change. The steps behind it are open to
// other packages that submit intents, goal run and audit: New makes an intent, Prepare
// completes and checks it, and Submit stores it and prints its id.
package create

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/target"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
	"github.com/pfl-forge/pfl-forge/config"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

// originSystem names this program as the publisher of an intent.
const originSystem = "cli"

// flags are the flags of create: what a person says about an intent.
type flags struct {
	title, body, file string
	kind, risk        string
	recipe, agent     string
	with              []string
	dependsOn, labels []string
	criteria          []string
	priority          int
	budget            float64
	dryRun            bool
	format            render.Format
}

// Command returns the command create.
func Command(a *kit.App) *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   "create [<id>]",
		Short: "ask for a change",
		Long:  "Ask for a change. It is stored at once, and worked on by the next run or the one in progress.",
		Example: `  pfl-forge create --title "Add a password reset link" --body "Below the login form."
  pfl-forge create reset-link -f reset-link.md --risk low
  pfl-forge create --title "Format the code" --recipe gofmt
  pfl-forge create --title "Add a reset link" --criterion "the login page links to the reset form" --criterion "a test covers an unknown address"
  git log -1 --format=%B | pfl-forge create follow-up -f -`,
		Args: kit.Between(0, 1, "the id of the intent"),
		RunE: func(cmd *cobra.Command, args []string) error { return create(cmd.Context(), a, args, &f) },
	}
	set := cmd.Flags()
	set.StringVarP(&f.title, "title", "t", "", "one line; default: the first line of the text")
	set.StringVarP(&f.body, "body", "b", "", "what should change, and why")
	set.StringVarP(&f.file, "file", "f", "", "read the text from a `file`, or from standard input with -")
	set.StringVar(&f.kind, "type", "", "feature, fix, refactor, test, audit, ...; default: chosen by the analysis")
	set.StringVar(&f.risk, "risk", "", "low, med or high; default: chosen by the analysis")
	set.StringSliceVar(&f.dependsOn, "depends-on", nil, "`ids` of intents that must be done first")
	set.StringArrayVar(&f.criteria, "criterion", nil, "a `condition` that must hold in the end, which makes the intent a goal; may be repeated")
	set.StringVar(&f.recipe, "recipe", "", "`name` of a recipe of pfl-forge.yaml that makes the change")
	set.StringArrayVar(&f.with, "with", nil, "`NAME=VALUE` of a parameter of the recipe; may be repeated")
	set.IntVar(&f.priority, "priority", 0, "a number to sort by; does not change the order of work")
	set.StringSliceVar(&f.labels, "label", nil, "`labels` to find the intent by")
	set.StringVar(&f.agent, "agent", "", "the agent back end: "+strings.Join(config.Agents(), ", ")+", or one of the project's own")
	set.Float64Var(&f.budget, "budget", 0, "spending limit for its agents, in US `dollars`")
	set.BoolVar(&f.dryRun, "dry-run", false, "print the intent and submit nothing")
	kit.OutputFlag(cmd, &f.format)
	cmd.MarkFlagsMutuallyExclusive("body", "file")
	_ = cmd.RegisterFlagCompletionFunc("risk", cobra.FixedCompletions([]string{"low", "med", "high"}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("agent", cobra.FixedCompletions(config.Agents(), cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("depends-on", target.Intents(a, target.AnyIntent, 0))
	_ = cmd.RegisterFlagCompletionFunc("recipe", target.Recipes(a))
	return cmd
}

// create submits the intent that the flags describe, or with --dry-run prints it.
func create(ctx context.Context, a *kit.App, args []string, f *flags) error {
	intent, err := intent(a, f)
	if err != nil {
		return err
	}
	if len(args) > 0 {
		if intent.ID, err = forge.ParseIntentID(args[0]); err != nil {
			return kit.Usage(err)
		}
	}
	t, err := target.Open(ctx, a, f.dryRun)
	if err != nil {
		return err
	}
	defer t.Close()
	if err := Prepare(ctx, t, intent); err != nil {
		return err
	}
	if intent.Recipe != "" && len(intent.Criteria) > 0 {
		a.Say("--criterion has no effect with --recipe: the recipe's check decides")
	}
	if f.dryRun {
		return Print(a, intent, f.format)
	}
	return Submit(ctx, a, t, intent, f.format)
}

// intent returns the intent that the flags describe, without an id.
func intent(a *kit.App, f *flags) (*forge.Intent, error) {
	body, err := text(a, f)
	if err != nil {
		return nil, err
	}
	title := f.title
	if title == "" {
		title = FirstLine(body)
	}
	if title == "" {
		return nil, kit.Usage(errors.New("--title is missing, and there is no text to take it from (--body or --file)"))
	}
	if strings.TrimSpace(body) == "" {
		body = title + "\n"
	}
	with, err := values(f.with)
	if err != nil {
		return nil, err
	}
	i := New(title, body)
	i.Type, i.Risk, i.Criteria, i.Labels, i.Priority = f.kind, forge.Risk(f.risk), f.criteria, f.labels, f.priority
	i.BudgetUSD, i.Agent, i.Recipe, i.With = f.budget, f.agent, f.recipe, with
	for _, d := range f.dependsOn {
		i.DependsOn = append(i.DependsOn, forge.IntentID(d))
	}
	return i, nil
}

// text returns the body: of --body, of a file, or of standard input.
func text(a *kit.App, f *flags) (string, error) {
	if f.file == "" {
		return f.body, nil
	}
	from := a.In
	if f.file != "-" {
		info, err := os.Stat(f.file)
		if err != nil {
			return "", fmt.Errorf("--file: %w", err)
		}
		if !info.Mode().IsRegular() {
			return "", fmt.Errorf("--file: %s is not a regular file; use --file - to read from a pipe", f.file)
		}
		file, err := os.Open(f.file)
		if err != nil {
			return "", fmt.Errorf("--file: %w", err)
		}
		defer file.Close()
		from = file
	}
	text, err := io.ReadAll(io.LimitReader(from, forge.MaxBody+1))
	if err != nil {
		return "", fmt.Errorf("--file: %w", err)
	}
	if len(text) > forge.MaxBody {
		return "", fmt.Errorf("--file: has more than %d bytes", forge.MaxBody)
	}
	return string(text), nil
}

// FirstLine returns the first line of a body that has text in it, without the marks of a
// heading and cut to the length of a title.
func FirstLine(body string) string {
	for line := range strings.Lines(body) {
		if line = strings.TrimSpace(strings.TrimLeft(strings.TrimSpace(line), "#")); line != "" {
			return term.Short(line, forge.MaxTitle/4)
		}
	}
	return ""
}

// values parses the values of a recipe's parameters, each as NAME=VALUE.
func values(list []string) (map[string]string, error) {
	with := map[string]string{}
	for _, entry := range list {
		name, value, ok := strings.Cut(entry, "=")
		if !ok {
			return nil, kit.Usage(fmt.Errorf("--with %q is not NAME=VALUE", entry))
		}
		if err := config.CheckParamName(name); err != nil {
			return nil, kit.Usage(fmt.Errorf("--with %s: %w", name, err))
		}
		if _, twice := with[name]; twice {
			return nil, kit.Usage(fmt.Errorf("--with %s is given twice", name))
		}
		with[name] = value
	}
	return with, nil
}
