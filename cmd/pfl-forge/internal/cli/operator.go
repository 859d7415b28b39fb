package cli

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

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/operator"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
)

const operatorHelp = `Talk to Claude Code about the repository's intents. It is told how things stand and what
waits for you, has nothing but Bash, and drives pfl-forge for you: it looks without
asking, and asks you at the terminal before it runs anything else.

It is your own claude, with your login; what the repository's settings say does not
count. The exit code is that of claude.`

type operatorFlags struct {
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

func (a *app) operatorCommand() *cobra.Command {
	var f operatorFlags
	cmd := &cobra.Command{
		Use:     "operator [<what you want>]",
		Aliases: []string{"parent"},
		Short:   "talk to an agent that drives pfl-forge for you",
		Long:    operatorHelp,
		Example: "  pfl-forge operator\n  pfl-forge operator \"what waits for me?\"\n  pfl-forge operator --print",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.operator(cmd.Context(), strings.Join(args, " "), &f)
		},
	}
	cmd.Flags().StringVar(&f.model, "model", "", "the model, as claude knows it; claude's default if left out")
	cmd.Flags().BoolVar(&f.print, "print", false, "print what would be run, and run nothing")
	output(cmd, &f.format)
	return cmd
}

func (a *app) operator(ctx context.Context, first string, f *operatorFlags) error {
	if a.remote() {
		return usageError{errors.New("the operator works in a repository: leave out --server and --context")}
	}
	c, ok := a.terminal()
	if ok {
		c.Close()
	} else if !f.print {
		return errors.New("the operator is a conversation and needs a terminal; --print shows what would be run")
	}
	claude, found := a.lookUp("claude")
	if !found && !f.print {
		return errors.New("claude is not in PATH: install Claude Code, or use the other commands; pfl-forge doctor says what is there")
	}
	situation, dir, err := a.situation(ctx)
	if err != nil {
		return err
	}
	system, err := situation.Prompt()
	if err != nil {
		return err
	}
	run := sessionCommand{"claude", operator.Args(system, programName, f.model, first), dir}
	if f.print {
		return a.printSession(&run, f.format)
	}
	if err := os.Chdir(dir); err != nil {
		return err
	}
	// It takes this process's place: terminal, signals and exit code are its own.
	err = syscall.Exec(claude, append([]string{run.Program}, run.Args...), a.callable())
	return fmt.Errorf("start %s: %w", claude, err)
}

func (a *app) printSession(run *sessionCommand, format render.Format) error {
	if format.Data() {
		return format.Write(a.out, run)
	}
	words := []string{"cd", quote(run.Dir), "&&", run.Program}
	for _, arg := range run.Args {
		words = append(words, quote(arg))
	}
	fmt.Fprintln(a.out, safe(strings.Join(words, " ")))
	return nil
}

// situation returns how things stand, and the folder to work in.
func (a *app) situation(ctx context.Context) (*operator.Situation, string, error) {
	t, err := a.reader(ctx)
	if err != nil {
		return nil, "", err
	}
	defer t.close()
	s := &operator.Situation{Project: t.project, Program: programName, Running: t.bus != nil && !t.owner, Now: time.Now()}
	if base, err := t.repo.Base(ctx); err == nil {
		s.Branch = string(base.Branch)
	}
	if s.Intents, err = t.summaries(ctx); err != nil {
		return nil, "", err
	}
	for i := range s.Intents {
		if s.Intents[i].Waiting == "" {
			continue
		}
		e, v, err := t.entry(ctx, s.Intents[i].Key.Intent)
		if err != nil {
			return nil, "", err
		}
		if e != nil {
			s.Waiting = append(s.Waiting, operator.Entry{
				ID: e.ID, Title: e.Title, Why: e.why(), Asks: openTexts(&v.Intent), Commands: e.Commands,
			})
		}
	}
	return s, t.repo.Root, nil
}

func openTexts(i *forge.Intent) []string {
	var list []string
	for _, c := range i.Clarifications {
		if c.Answer == nil {
			list = append(list, c.Question)
		}
	}
	return list
}

// programName is how the agent calls this program.
const programName = "pfl-forge"

// callable returns the environment in which this very program is found by its name.
func (a *app) callable() []string {
	exe, err := os.Executable()
	if err != nil || filepath.Base(exe) != programName {
		return os.Environ()
	}
	if path, ok := a.lookUp(programName); ok && sameFile(path, exe) {
		return os.Environ()
	}
	path := "PATH=" + filepath.Dir(exe) + string(filepath.ListSeparator) + a.getenv("PATH")
	var env []string
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "PATH=") {
			env = append(env, entry)
		}
	}
	return append(env, path)
}

// lookUp finds a program in PATH.
func (a *app) lookUp(name string) (string, bool) {
	for _, dir := range filepath.SplitList(a.getenv("PATH")) {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 && filepath.IsAbs(path) {
			return path, true
		}
	}
	return "", false
}
