// Package knowledge is the command knowledge: what a project knows from the
// work on its goals, and what people add, correct and have it forget.
//
// Six commands: list and show read, add, edit and forget send one word of a person,
// and apply.go reads a whole file back. Knowledge is folded from the project's
// journal by package runner, which also orders it by a text, as agents are told it:
// list --about shows that. Words are sent as forge.Teach to the project's machine,
// which decides (services/runner/flow/knowledge has the rules and the bounds).
//
// Data goes to standard output; that there is none is said on standard error.
// The test is knowledge.txtar in cmd/pfl-forge/testdata/script.
package knowledge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/pending"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/target"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
	"github.com/pfl-forge/pfl-forge/internal/term"
	"github.com/pfl-forge/pfl-forge/services/runner"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/knowledge"
)

const help = `What the project knows: discoveries, lessons, patterns and constraints that agents found out while they worked on
goals, and what people added. Intents get what is relevant to them, see pfl-forge knowledge list --about.

What you forget or correct does not come back from what agents find later.`

// Command returns the command knowledge with those below it.
func Command(a *kit.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "knowledge",
		Short: "what the project knows: list it, add to it, correct it, forget",
		Long:  help,
		Example: "  pfl-forge knowledge list --about 'links that expire'\n" +
			"  pfl-forge knowledge add 'Links expire after a day' --type constraint --file mail/link.go:12\n  pfl-forge knowledge forget reset/k3",
		Args: kit.KnownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(listCommand(a), showCommand(a), addCommand(a), editCommand(a), forgetCommand(a), applyCommand(a))
	return cmd
}

// piece is a piece of knowledge as it is shown.
type piece struct {
	// ID names it: that of its goal and a number, or of a person's a number alone.
	ID string `json:"id" yaml:"id"`
	// Type is discovery, lesson, pattern, constraint or codebase.
	Type string `json:"type" yaml:"type"`
	// Category is a key word; empty without one.
	Category string `json:"category,omitempty" yaml:"category,omitempty"`
	// Content is the finding.
	Content string `json:"content" yaml:"content"`
	// ExampleFile is where to see it; empty without one.
	ExampleFile string `json:"example_file,omitempty" yaml:"example_file,omitempty"`
	// Confidence is how certain it is: high, medium or low.
	Confidence string `json:"confidence" yaml:"confidence"`
	// SourceTask is the title of the goal that found it; empty if a person added it.
	SourceTask string `json:"source_task,omitempty" yaml:"source_task,omitempty"`
	// Author is the person who wrote it, or corrected it last.
	Author string `json:"author,omitempty" yaml:"author,omitempty"`
	// AppliedCount is how many executions of goals it helped.
	AppliedCount int `json:"applied_count" yaml:"applied_count"`
	// CreatedAt is since when it is known.
	CreatedAt time.Time `json:"created_at" yaml:"created_at"`
}

func pieceOf(k *forge.Knowledge) piece {
	return piece{
		k.ID, string(k.Type), k.Category, k.Content, k.ExampleFile, string(k.Confidence), k.SourceTask, k.Author, k.AppliedCount, k.CreatedAt.UTC(),
	}
}

// read returns the pieces of knowledge of the project; see runner.Knowledge.
// Before the first intent there is none, without an error. It reads the whole
// journal of the project, since summaries have no knowledge.
func read(ctx context.Context, a *kit.App, about string) ([]forge.Knowledge, error) {
	t, err := target.Reader(ctx, a)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	if t.Bus == nil {
		return nil, nil
	}
	return runner.Knowledge(ctx, t.Bus, t.Project, about)
}

// find returns the piece with an id.
// That there is none is an error that names the list.
func find(ctx context.Context, a *kit.App, id string) (*forge.Knowledge, error) {
	list, err := read(ctx, a, "")
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(list, func(k forge.Knowledge) bool { return k.ID == id })
	if i < 0 {
		return nil, fmt.Errorf("the project knows nothing of the id %q; see `pfl-forge knowledge list`", id)
	}
	return &list[i], nil
}

// ids completes the ids of what is known.
// An error completes nothing: a shell has no place to show one.
func ids(a *kit.App) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		list, err := read(cmd.Context(), a, "")
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var out []string
		for i := range list {
			out = append(out, cobra.CompletionWithDesc(list[i].ID, term.Short(render.FirstLine(list[i].Content), 60)))
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}

// listCommand returns the command that lists what the project knows. An agent is given a part of
// it alone, chosen by what it is about: with --about the list is in the order of that choice.
func listCommand(a *kit.App) *cobra.Command {
	var about string
	var kinds []string
	var format render.Format
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "list what the project knows, the oldest first",
		Long:    "List what the project knows, the oldest first; with --about in the order of relevance to an intent with that text.",
		Example: "  pfl-forge knowledge list --about 'links that expire'\n  pfl-forge knowledge list --type lesson -o json",
		Args:    kit.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, kind := range kinds {
				if !slices.Contains(knowledge.Types(), forge.KnowledgeType(kind)) {
					return kit.Usage(fmt.Errorf("--type: %q is not one of %s", kind, words(knowledge.Types())))
				}
			}
			known, err := read(cmd.Context(), a, about)
			if err != nil {
				return err
			}
			list, names := []piece{}, []string{}
			for i := range known {
				if p := pieceOf(&known[i]); len(kinds) == 0 || slices.Contains(kinds, p.Type) {
					list, names = append(list, p), append(names, p.ID)
				}
			}
			return a.Print(format, list, names, func() error { return printTable(a, list, len(known) > 0, time.Now()) })
		},
	}
	set := cmd.Flags()
	set.StringVar(&about, "about", "", "order by relevance to this `text`")
	kit.ListVar(set, &kinds, "type", nil, "only these `types`: "+words(knowledge.Types()))
	_ = cmd.RegisterFlagCompletionFunc("type", cobra.FixedCompletions(texts(knowledge.Types()), cobra.ShellCompDirectiveNoFileComp))
	kit.OutputFlag(cmd, &format)
	return cmd
}

// printTable prints pieces, each in a row. Of a text the first line is shown; show
// has all of it. Where there are none, others says that the filter has left out some.
func printTable(a *kit.App, list []piece, others bool, now time.Time) error {
	if len(list) == 0 {
		if others {
			a.Say("no knowledge matches; without --type: pfl-forge knowledge list")
		} else {
			a.Say("the project knows nothing yet: goals find things out, and `pfl-forge knowledge add` adds what you know")
		}
		return nil
	}
	columns := render.Columns{Header: []string{"ID", "TYPE", "SURE", "HELPED", "AGE", "CONTENT"}, Shrink: 5}
	for i := range list {
		p := &list[i]
		columns.Add(
			p.ID, p.Type, p.Confidence, fmt.Sprint(p.AppliedCount), render.Age(now.Sub(p.CreatedAt)), render.FirstLine(p.Content),
		)
	}
	return a.Table(&columns)
}

// showCommand returns the command that shows one piece, with where it comes
// from: a person who judges it wants to know who has found it.
func showCommand(a *kit.App) *cobra.Command {
	var format render.Format
	cmd := &cobra.Command{
		Use: "show <id>", Short: "show a piece of knowledge", Args: kit.Between(1, 1, "the id"), ValidArgsFunction: ids(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			k, err := find(cmd.Context(), a, args[0])
			if err != nil {
				return err
			}
			p := pieceOf(k)
			return a.Print(format, p, []string{p.ID}, func() error {
				fmt.Fprintf(a.Out, "%s: %s, %s, helped %d times\n", p.ID, p.Type, p.Confidence, p.AppliedCount)
				fmt.Fprintln(a.Out, kit.Indent(kit.Safe(p.Content), "  "))
				for _, line := range [][2]string{
					{"category", p.Category}, {"file", p.ExampleFile}, {"found by the goal", p.SourceTask}, {"written by", p.Author},
				} {
					if line[1] != "" {
						fmt.Fprintf(a.Out, "%s: %s\n", line[0], term.Line(line[1]))
					}
				}
				return nil
			})
		},
	}
	kit.OutputFlag(cmd, &format)
	return cmd
}

// said are the flags for what a piece says.
// They are as they were typed; which of them were given only cobra knows.
type said struct {
	kind, category, file, confidence string
}

// flags adds the flags to a command.
// add and edit have the same ones, with the same completions.
func (s *said) flags(cmd *cobra.Command) {
	set := cmd.Flags()
	set.StringVar(&s.kind, "type", "", "what it is about: "+words(knowledge.Types()))
	set.StringVar(&s.category, "category", "", "a key `word` such as testing")
	set.StringVar(&s.file, "file", "", "the `path` of an example, with lines if they matter")
	set.StringVar(&s.confidence, "confidence", "", "how certain it is: "+words(knowledge.Confidences()))
	_ = cmd.RegisterFlagCompletionFunc("type", cobra.FixedCompletions(texts(knowledge.Types()), cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("confidence", cobra.FixedCompletions(texts(knowledge.Confidences()), cobra.ShellCompDirectiveNoFileComp))
}

// apply sets the fields whose flags were given, and returns an error that names
// the flag of the first wrong one. The rules of the project's machine are asked
// here already, so that a mistake is named by its flag.
func (s *said) apply(cmd *cobra.Command, k *forge.Knowledge) error {
	for _, f := range []struct {
		name string
		set  func()
	}{
		{"type", func() { k.Type = forge.KnowledgeType(s.kind) }},
		{"category", func() { k.Category = s.category }},
		{"file", func() { k.ExampleFile = s.file }},
		{"confidence", func() { k.Confidence = forge.Confidence(s.confidence) }},
	} {
		if cmd.Flags().Changed(f.name) {
			f.set()
		}
	}
	if e := knowledge.Validate(k); e != nil {
		where := map[string]string{"content": "the text", "example_file": "--file"}
		name, ok := where[e.Field]
		if !ok {
			name = "--" + e.Field
		}
		return kit.Usage(fmt.Errorf("%s: %s", name, e.Reason))
	}
	return nil
}

// text returns the text of an argument, or that of standard input for -.
// Of a longer text than a piece may have enough is read for apply to refuse it.
func text(a *kit.App, arg string) (string, error) {
	if arg != "-" {
		return arg, nil
	}
	data, err := io.ReadAll(io.LimitReader(a.In, knowledge.MaxContent+2))
	return strings.TrimSpace(string(data)), err
}

// addCommand returns the command by which a person teaches the project something. It is
// believed, unless the person says otherwise, since nothing has to confirm what a person says.
func addCommand(a *kit.App) *cobra.Command {
	var s said
	cmd := &cobra.Command{
		Use:     "add <text>|-",
		Short:   "add a piece of knowledge",
		Long:    "Add what agents should know, in a few sentences; - reads it from standard input. It is a lesson that is certain unless you say otherwise.",
		Example: "  pfl-forge knowledge add 'Links expire after a day' --type constraint --file mail/link.go:12",
		Args:    kit.Between(1, 1, "the text"),
		RunE: func(cmd *cobra.Command, args []string) error {
			k := forge.Knowledge{Type: forge.KnowledgeLesson, Confidence: forge.ConfidenceHigh}
			var err error
			if k.Content, err = text(a, args[0]); err != nil {
				return err
			}
			if err := s.apply(cmd, &k); err != nil {
				return err
			}
			return teach(cmd.Context(), a, "it", "is known now", &forge.Teach{Knowledge: &k})
		},
	}
	s.flags(cmd)
	return cmd
}

// editCommand returns the command that corrects a piece. What it does not name
// stays as it is, so that a text can be mended without knowing the rest.
func editCommand(a *kit.App) *cobra.Command {
	var s said
	cmd := &cobra.Command{
		Use: "edit <id> [<text>|-]", Short: "correct a piece of knowledge",
		Long:    "Correct what a piece of knowledge says: its text, - reads that from standard input, or what the flags name. The rest stays.",
		Example: "  pfl-forge knowledge edit reset/k3 'Links expire after an hour'\n  pfl-forge knowledge edit reset/k3 --confidence low",
		Args:    kit.Between(1, 2, "the id"), ValidArgsFunction: ids(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && cmd.Flags().NFlag() == 0 {
				return kit.Usage(errors.New("nothing to correct: give a text, or one of the flags"))
			}
			k, err := find(cmd.Context(), a, args[0])
			if err != nil {
				return err
			}
			if len(args) > 1 {
				if k.Content, err = text(a, args[1]); err != nil {
					return err
				}
			}
			if err := s.apply(cmd, k); err != nil {
				return err
			}
			return teach(cmd.Context(), a, k.ID, "corrected", &forge.Teach{ID: k.ID, Knowledge: k})
		},
	}
	s.flags(cmd)
	return cmd
}

// forgetCommand returns the command that has the project forget pieces. The
// journal keeps who had it do so.
func forgetCommand(a *kit.App) *cobra.Command {
	return &cobra.Command{
		Use: "forget <id>...", Short: "have the project forget pieces of knowledge",
		Long: "Have the project forget pieces of knowledge. They do not come back from what agents find; add them again if you want them back.",
		Args: kit.AtLeast(1, "the id"), ValidArgsFunction: ids(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			var list []*forge.Teach
			for _, id := range args {
				if id == "" {
					return kit.Usage(errors.New("an id is empty"))
				}
				list = append(list, &forge.Teach{ID: id})
			}
			return target.Once(cmd.Context(), a, func(t *target.Target) error {
				b := pending.Batch{App: a}
				for _, m := range list {
					b.Send(cmd.Context(), t, term.Line(m.ID), "forgotten", forge.Event{To: t.Key("").ProjectKey(), Message: m})
				}
				return b.End(t)
			})
		},
	}
}

// teach sends a person's word, and prints what became of it.
// who names the piece in the line that is printed, and done says what has become of it.
func teach(ctx context.Context, a *kit.App, who, done string, m *forge.Teach) error {
	return target.Once(ctx, a, func(t *target.Target) error {
		b := pending.Batch{App: a}
		b.Send(ctx, t, who, done, forge.Event{To: t.Key("").ProjectKey(), Message: m})
		return b.End(t)
	})
}

// texts returns words as strings.
// It is for flags, which take plain strings.
func texts[T ~string](list []T) []string {
	var out []string
	for _, w := range list {
		out = append(out, string(w))
	}
	return out
}

// words returns words in a sentence.
func words[T ~string](list []T) string { return strings.Join(texts(list), ", ") }
