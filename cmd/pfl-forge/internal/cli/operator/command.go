package operator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/document"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/pending"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/target"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
	"github.com/pfl-forge/pfl-forge/internal/environ"
)

const operatorHelp = `Talk to Claude Code about the repository's intents. It knows the current state and what
waits for you, has no tool but Bash, and runs pfl-forge for you: it reads without asking,
and asks you at the terminal before it runs anything else.

It is your own claude, with your login; the repository's settings are ignored. The exit
code is that of claude.`

// flags are the flags of operator.
type flags struct {
	model  string
	print  bool
	format render.Format
}

// sessionCommand is a program that takes this one's place, as programs read it.
type sessionCommand struct {
	Program string   `json:"program" yaml:"program"`
	Args    []string `json:"args"    yaml:"args"`
	Dir     string   `json:"dir"     yaml:"dir"`
}

// Command returns the command operator.
func Command(a *kit.App) *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:     "operator [<what you want>]",
		Aliases: []string{"parent"},
		Short:   "talk to an agent that drives pfl-forge for you",
		Long:    operatorHelp,
		Example: "  pfl-forge operator\n  pfl-forge operator \"what waits for me?\"\n  pfl-forge operator --print",
		RunE: func(cmd *cobra.Command, args []string) error {
			return operator(cmd.Context(), a, strings.Join(args, " "), &f)
		},
	}
	cmd.Flags().StringVar(&f.model, "model", "", "the model, as claude names it; default: claude's own")
	cmd.Flags().BoolVar(&f.print, "print", false, "print the command, and run nothing")
	kit.OutputFlag(cmd, &f.format)
	return cmd
}

// operator replaces this process by a session with an agent, whose prompt says how things
// stand.
func operator(ctx context.Context, a *kit.App, first string, f *flags) error {
	if a.Remote() {
		return kit.Usage(errors.New("the operator works in a repository: omit --server and --context"))
	}
	c, ok := a.Terminal()
	if ok {
		c.Close()
	} else if !f.print {
		return errors.New("the operator needs a terminal; --print shows the command")
	}
	claude, found := lookUp(a, "claude")
	if !found && !f.print {
		return errors.New("claude is not in PATH: install Claude Code, or use the other commands; pfl-forge doctor lists what is installed")
	}
	situation, dir, err := situation(ctx, a)
	if err != nil {
		return err
	}
	system, err := situation.Prompt()
	if err != nil {
		return err
	}
	run := sessionCommand{"claude", Args(system, programName, f.model, first), dir}
	if f.print {
		return printSession(a, &run, f.format)
	}
	if err := os.Chdir(dir); err != nil {
		return err
	}
	// It takes this process's place: terminal, signals and exit code are its own.
	err = syscall.Exec(claude, append([]string{run.Program}, run.Args...), callable(a))
	return fmt.Errorf("start %s: %w", claude, err)
}

// printSession prints the command that would be run.
func printSession(a *kit.App, run *sessionCommand, format render.Format) error {
	if format.Data() {
		return format.Write(a.Out, run)
	}
	words := []string{"cd", kit.Quote(run.Dir), "&&", run.Program}
	for _, arg := range run.Args {
		words = append(words, kit.Quote(arg))
	}
	fmt.Fprintln(a.Out, kit.Safe(strings.Join(words, " ")))
	return nil
}

// situation returns how things stand in the repository, and the folder of that.
func situation(ctx context.Context, a *kit.App) (*Situation, string, error) {
	t, err := target.Reader(ctx, a)
	if err != nil {
		return nil, "", err
	}
	defer t.Close()
	s := &Situation{Project: t.Project, Program: programName, Running: t.Bus != nil && !t.Owner, Now: time.Now()}
	if base, err := t.Repo.Base(ctx); err == nil {
		s.Branch = string(base.Branch)
	}
	if s.Intents, err = t.Summaries(ctx); err != nil {
		return nil, "", err
	}
	decisions, err := pending.List(ctx, t)
	if err != nil {
		return nil, "", err
	}
	for _, d := range decisions {
		s.Waiting = append(s.Waiting, Entry{ID: d.ID, Title: d.Title, Why: d.Why(), Asks: openTexts(d.Questions), Commands: d.Commands})
	}
	return s, t.Repo.Root, nil
}

// openTexts returns the texts of the questions that have no answer.
func openTexts(questions []document.Question) []string {
	var list []string
	for i := range questions {
		if questions[i].Answer == nil {
			list = append(list, questions[i].Question)
		}
	}
	return list
}

// programName is the name by which the agent calls this program.
const programName = "pfl-forge"

// callable returns the environment with a PATH in which this very program is found by its
// name.
func callable(a *kit.App) []string {
	exe, err := os.Executable()
	if err != nil || filepath.Base(exe) != programName {
		return environ.All()
	}
	if path, ok := lookUp(a, programName); ok && kit.SameFile(path, exe) {
		return environ.All()
	}
	path := "PATH=" + filepath.Dir(exe) + string(filepath.ListSeparator) + a.Getenv("PATH")
	var env []string
	for _, entry := range environ.All() {
		if !strings.HasPrefix(entry, "PATH=") {
			env = append(env, entry)
		}
	}
	return append(env, path)
}

// lookUp returns the path of a program in PATH, false if there is none.
func lookUp(a *kit.App, name string) (string, bool) {
	for _, dir := range filepath.SplitList(a.Getenv("PATH")) {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 && filepath.IsAbs(path) {
			return path, true
		}
	}
	return "", false
}
