// Package intake has the command intake explain, which says what the rules of a
// gateway make of a webhook's delivery, and why. It reads two files and asks no
// server and no forge: for who writes rules, before a gateway has them.
//
// The decision is that of services/gateway/intake, the package that the gateway
// itself decides with. Facts that a delivery does not have, such as the
// permission of its author, are flags; limits count as unused.
package intake

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
	"github.com/pfl-forge/pfl-forge/config"
	"github.com/pfl-forge/pfl-forge/services/gateway/intake"
)

const help = `Say which rule of a gateway matches an event of a forge, and why the rules before it do not.

The delivery is the JSON of a webhook about an issue, or about a comment with a command, as
Gitea, Forgejo, GitHub and GitLab send it; their pages of a webhook show the last ones. A
delivery does not say what its author may do in the repository: the gateway asks the forge, and here
--permission says it. Limits count as unused.

Each rule is shown with its file: those of the repository are looked at behind the operator's, and
make what follows stricter or leave it as it is.

Nothing is asked and nothing is submitted. On a forge, the comment /forge explain says the same of
an issue, with the facts of the forge.`

const examples = `  pfl-forge intake explain --rules intake.yaml --permission write delivery.json
  pfl-forge intake explain --rules intake.yaml --repository-rules pfl-forge-intake.yaml - < delivery.json`

// maxDelivery bounds a delivery, in bytes: no forge sends a larger one.
const maxDelivery = 25 << 20

// options is how the command was called.
type options struct {
	// rules and repositoryRules are paths; without the second, the repository has none.
	rules, repositoryRules string
	// forge is the name that rules know the forge by.
	forge string
	// permission, kind and teams describe who asks; see intake.Unsaid.
	permission, kind string
	teams            []string
	// format is that of the document; as text, the steps of the decision are printed instead.
	format render.Format
}

// Command returns the command intake. Explain is its only subcommand: rules are written in an
// editor.
func Command(a *kit.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "intake",
		Short: "try the rules by which a gateway turns issues into intents",
		Args:  kit.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(explainCommand(a))
	return cmd
}

// explainCommand returns the command intake explain. The words of --permission and --is are
// offered by completion, and checked by check.
func explainCommand(a *kit.App) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:     "explain <delivery>",
		Short:   "say which rule matches a webhook's delivery, and why",
		Long:    help,
		Example: examples,
		Args:    kit.Between(1, 1, "the file of a delivery, or -"),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return kit.Usage(err)
			}
			return explain(a, &o, args[0])
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.rules, "rules", "", "`file` with the operator's rules")
	flags.StringVar(&o.repositoryRules, "repository-rules", "", "`file` with rules of the repository, which make the operator's stricter: its "+
		config.IntakeFileName)
	flags.StringVar(&o.forge, "forge", "forge", "`name` of the forge in the gateway's settings")
	flags.StringVar(&o.permission, "permission", "", "what who asks may do in the repository: none, read, triage, write or admin; default: not known")
	flags.StringVar(&o.kind, "is", "", "what who asks is: member, outsider or bot; default: as the delivery and the permission say")
	kit.ListVar(flags, &o.teams, "team", nil, "a `team` that who asks belongs to; may be repeated")
	kit.OutputFlag(cmd, &o.format)
	_ = cmd.MarkFlagFilename("rules")
	_ = cmd.MarkFlagFilename("repository-rules")
	for flag, words := range map[string][]string{
		"permission": {"none", "read", "triage", "write", "admin"},
		"is":         {"member", "outsider", "bot"},
	} {
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
	}
	return cmd
}

// check refuses flags that say nothing. An empty permission or kind is no mistake: it means that
// the delivery is to say it, and that a condition on what it does not say fails.
func (o *options) check() error {
	permission, kind := intake.Permission(o.permission), intake.Kind(o.kind)
	switch {
	case o.rules == "":
		return kit.Missing("--rules, the file of the operator's rules")
	case permission != "" && !permission.Includes(intake.None):
		return fmt.Errorf("--permission: %q: want none, read, triage, write or admin", kit.Safe(o.permission))
	case kind != "" && kind != intake.Member && kind != intake.Outsider && kind != intake.Bot:
		return fmt.Errorf("--is: %q: want member, outsider or bot", kit.Safe(o.kind))
	}
	if err := intake.CheckForge(o.forge); err != nil {
		return fmt.Errorf("--forge: %w", err)
	}
	return nil
}

// document is the outcome as programs read it. The names are those of the
// rules' file; what is empty is left to the project.
type document struct {
	Do        intake.Do `json:"do"                   yaml:"do"`
	Rule      string    `json:"rule,omitempty"       yaml:"rule,omitempty"`
	Refused   string    `json:"refused,omitempty"    yaml:"refused,omitempty"`
	Asker     asker     `json:"asker"                yaml:"asker"`
	Project   string    `json:"project,omitempty"    yaml:"project,omitempty"`
	As        intake.As `json:"as,omitempty"         yaml:"as,omitempty"`
	Type      string    `json:"type,omitempty"       yaml:"type,omitempty"`
	Risk      string    `json:"risk,omitempty"       yaml:"risk,omitempty"`
	Recipe    string    `json:"recipe,omitempty"     yaml:"recipe,omitempty"`
	Agent     string    `json:"agent,omitempty"      yaml:"agent,omitempty"`
	BudgetUSD float64   `json:"budget_usd,omitempty" yaml:"budget_usd,omitempty"`
	Priority  int       `json:"priority,omitempty"   yaml:"priority,omitempty"`
	Rules     []step    `json:"rules"                yaml:"rules"`
}

// asker is the account whose permission was looked at: of who put the label on
// that the rule names, who wrote the command, or who wrote the text.
type asker struct {
	ID         int64             `json:"id"                   yaml:"id"`
	Login      string            `json:"login"                yaml:"login"`
	Is         intake.Kind       `json:"is"                   yaml:"is"`
	Permission intake.Permission `json:"permission,omitempty" yaml:"permission,omitempty"`
}

// step is one rule that was looked at, in their order: the operator's first, then the
// repository's. Why is the first condition that did not hold, or what the rule says.
type step struct {
	File       string `json:"file"       yaml:"file"`
	Rule       string `json:"rule"       yaml:"rule"`
	Repository bool   `json:"repository" yaml:"repository"`
	Matched    bool   `json:"matched"    yaml:"matched"`
	Why        string `json:"why"        yaml:"why"`
}

// explain prints the decision on a delivery.
//
// Limits are asked for with nothing used yet, because what counts against them is known to a
// running gateway only. An outcome of ignore is no error: the exit code says whether the question
// could be answered.
func explain(a *kit.App, o *options, path string) error {
	rules, err := readRules(o.rules, intake.Parse)
	if err != nil {
		return err
	}
	var narrowing *intake.Rules
	if o.repositoryRules != "" {
		if narrowing, err = readRules(o.repositoryRules, intake.ParseNarrowing); err != nil {
			return err
		}
	}
	data, err := readDelivery(a, path)
	if err != nil {
		return err
	}
	t, err := intake.ReadDelivery(o.forge, data, intake.Unsaid{Permission: intake.Permission(o.permission), Kind: intake.Kind(o.kind), Teams: o.teams})
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	d := rules.Decide(&t, narrowing, func(string) (int, float64) { return 0, 0 }, time.Now())
	doc := document{
		Do: d.Do, Rule: d.Rule, Refused: d.Refused, Asker: asker{d.Asker.ID, d.Asker.Login, d.Asker.Kind, d.Asker.Permission},
		Project: string(d.Project), As: d.As, Type: d.Type, Risk: string(d.Risk), Recipe: d.Recipe, Agent: d.Agent, BudgetUSD: d.BudgetUSD,
		Priority: d.Priority, Rules: []step{},
	}
	for _, s := range d.Steps {
		doc.Rules = append(doc.Rules, step{s.File, s.Rule, s.Repository, s.Matched, s.Why})
	}
	return a.Print(o.format, doc, []string{string(d.Do)}, func() error {
		_, err := fmt.Fprintf(a.Out, "%s asks, in %s\n%s", kit.Safe(d.Asker.Login), kit.Safe(t.Repository), d.Explain())
		if err == nil && d.Do != intake.Ignore {
			_, err = fmt.Fprintf(a.Out, "intent: project %s, as %s\n", d.Project, d.As)
		}
		return err
	})
}

// readRules reads a file of rules with one of the two parsers of package intake: the operator's,
// or that of a repository, which may only make these stricter. Errors name the file, the line and
// the field.
func readRules(path string, parse func(string, []byte) (*intake.Rules, error)) (*intake.Rules, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return parse(filepath.Base(path), data)
}

// readDelivery reads the file of a delivery; of the standard input for -. A gateway refuses larger
// ones before it looks at them, so they are refused here.
func readDelivery(a *kit.App, path string) ([]byte, error) {
	in := a.In
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, maxDelivery+1))
	if err == nil && len(data) > maxDelivery {
		err = errors.New("the delivery is larger than any forge sends")
	}
	return data, err
}
