// Package create is the command that asks for a change. The steps behind it are open to
// other packages that submit intents, goal run and audit: New makes an intent, Prepare
// completes and checks it, and Submit stores it and prints its id.
//
// command.go has the command and the text, fields.go the flags for fields, which other
// commands share, and submit.go the three steps. The id of a new intent is printed to standard
// output and nothing else, so that a script can take it; hints go to standard error. Tests are
// here for the pure parts, and create.txtar in cmd/pfl-forge/testdata/script for the command.
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
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/complete"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/target"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

// originSystem names this program as the publisher of an intent.
const originSystem = "cli"

// flags are the flags of create: what a person says about an intent.
// file is the name of the text's file, - for standard input; it and --body exclude each other.
type flags struct {
	Fields
	file   string
	dryRun bool
	format render.Format
}

// Command returns the command create. The flags of fields come from the table
// in package document, so that files, the API and flags have the same.
func Command(a *kit.App) *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   "create [<id>]",
		Short: "ask for a change",
		Long:  "Ask for a change. It is stored at once, and worked on by the next run or the one in progress.",
		Example: `  pfl-forge create --title "Add a password reset link" --body "Below the login form."
  pfl-forge create reset-link -f reset-link.md --risk low
  pfl-forge create --title "Format the code" --recipe gofmt
  pfl-forge create --title "Add a reset link" --criterion "the login page links to the reset form" --criterion "a test covers an unknown address" --check tests
  git log -1 --format=%B | pfl-forge create follow-up -f -`,
		Args: oneID,
		RunE: func(cmd *cobra.Command, args []string) error { return create(cmd.Context(), a, args, &f) },
	}
	set := cmd.Flags()
	f.Add(cmd)
	set.StringVarP(&f.file, "file", "f", "", "read the text from a `file`, or from standard input with -")
	set.BoolVar(&f.dryRun, "dry-run", false, "print the intent and submit nothing")
	kit.OutputFlag(cmd, &f.format)
	cmd.MarkFlagsMutuallyExclusive("body", "file")
	_ = cmd.RegisterFlagCompletionFunc("depends-on", complete.Intents(a, complete.AnyIntent, 0))
	_ = cmd.RegisterFlagCompletionFunc("recipe", complete.Recipes(a))
	f.AddChecks(cmd, complete.Checks(a))
	return cmd
}

// oneID is the check of the arguments: the id, if there is one. More words are
// a text whose flag was forgotten.
func oneID(cmd *cobra.Command, args []string) error {
	if len(args) > 1 && !cmd.Flags().Changed("title") {
		return kit.Usage(fmt.Errorf("unexpected argument %q: a text needs --title, as in pfl-forge create --title %q", args[1], strings.Join(args, " ")))
	}
	return kit.Between(0, 1, "the id of the intent")(cmd, args)
}

// create submits the intent that the flags describe, or with --dry-run prints it.
// The flags are read before a target is opened, so that most mistakes in them need no server.
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
	if f.dryRun {
		return Print(a, intent, f.format)
	}
	return Submit(ctx, a, t, intent, f.format)
}

// intent returns the intent that the flags describe, without an id.
//
// A title is taken from the first line of the text, or from the recipe; a text
// from the title. Without any of these it is a mistake in the command line.
func intent(a *kit.App, f *flags) (*forge.Intent, error) {
	body, err := text(a, f)
	if err != nil {
		return nil, err
	}
	said, err := f.Intent()
	if err != nil {
		return nil, err
	}
	title := said.Title
	if title == "" {
		title = FirstLine(body)
	}
	if title == "" && said.Recipe != "" {
		title = "Run recipe " + said.Recipe
	}
	if title == "" {
		return nil, kit.Usage(errors.New("--title is missing, and there is no text to take it from (--body or --file)"))
	}
	if strings.TrimSpace(body) == "" {
		body = title + "\n"
	}
	return filled(said, title, body), nil
}

// text returns the body: of --body, of a file, or of standard input. A longer
// text than an intent may have is refused and not cut. Only a regular file is
// read by its name, so that the command does not hang at a pipe.
func text(a *kit.App, f *flags) (string, error) {
	if f.file == "" {
		return f.intent.Body, nil
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
// It is empty if no line has text.
func FirstLine(body string) string {
	for line := range strings.Lines(body) {
		if line = strings.TrimSpace(strings.TrimLeft(strings.TrimSpace(line), "#")); line != "" {
			return term.Short(line, forge.MaxTitle/4)
		}
	}
	return ""
}
