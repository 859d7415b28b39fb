// Package verifycommit has the command verify-commit, which says whether commits
// were made by pfl-forge as they should, and the check of a push that is made of
// it. It needs the repository and the file of trusted keys, and no server.
package verifycommit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/local"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
	"github.com/pfl-forge/pfl-forge/internal/term"
	"github.com/pfl-forge/pfl-forge/proof"
)

// keysVariable names the file of trusted keys in the environment.
const keysVariable = "FORGE_TRUSTED_KEYS"

const help = `Say whether commits were made as they should: signed by an implementer, verified on
exactly their parent, reviewed, planned, and approved where that was needed. For that
there are signed statements beside each commit, under refs/forge/_proofs. Only the
repository and the file of trusted keys are read, and no server is asked.

A range A..B stands for every commit from B back to A, without A.

The trusted keys are those of --trusted-keys, of FORGE_TRUSTED_KEYS, or of this
machine. They are in the format of git's gpg.ssh.allowedSignersFile; pfl-forge auth init
writes the file of an installation.

With --stdin it decides on a push, as a pre-receive hook: what it reads are the lines
that git gives to one. Every new commit of a protected branch must be made as it
should; the branch can be neither rewritten nor deleted, and the proofs of what is on
it cannot be changed.`

const examples = `  pfl-forge verify-commit HEAD
  pfl-forge verify-commit --trusted-keys /etc/pfl-forge/allowed_signers v1.0..main
  pfl-forge verify-commit --stdin --branch main --trusted-keys /etc/pfl-forge/allowed_signers`

// options is how the command was called.
type options struct {
	// keys is the path of the file of trusted keys; empty: as trusted says.
	keys string
	// stdin decides on a push.
	stdin bool
	// branches are the protected ones, by their short names.
	branches []string
	// approved wants an approval of each commit.
	approved bool
	format   render.Format
}

// Command returns the command verify-commit.
func Command(a *kit.App) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:     "verify-commit <commit>...",
		Short:   "say whether commits were verified, reviewed and approved as they should",
		Long:    help,
		Example: examples,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(a, args); err != nil {
				return kit.Usage(err)
			}
			return run(cmd.Context(), a, &o, args)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.keys, "trusted-keys", "", "`file` with the keys to trust, instead of "+keysVariable+" or this machine's own")
	flags.BoolVar(&o.stdin, "stdin", false, "decide on a push, as a pre-receive hook")
	kit.ListVar(flags, &o.branches, "branch", nil, "with --stdin: a protected `branch`; may be repeated; default: the one of HEAD")
	flags.BoolVar(&o.approved, "approved", false, "a person must have approved each commit, also where the plan did not ask for it")
	kit.OutputFlag(cmd, &o.format)
	_ = cmd.MarkFlagFilename("trusted-keys")
	_ = cmd.RegisterFlagCompletionFunc("branch", cobra.NoFileCompletions)
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	return cmd
}

// check refuses flags and arguments that make no sense together. An organisation's server has no
// part in this: what it says is to be checked, so it is not asked.
func (o *options) check(a *kit.App, args []string) error {
	switch {
	case a.Remote():
		return errors.New("verify-commit reads the repository here: omit --server and --context")
	case o.stdin && len(args) > 0:
		return errors.New("with --stdin the commits are those of the push: omit them")
	case !o.stdin && len(args) == 0:
		return errors.New("give a commit, or a range such as v1.0..main")
	case !o.stdin && len(o.branches) > 0:
		return errors.New("--branch needs --stdin")
	}
	return nil
}

// trusted reads the file of trusted keys, from the first of these that is named: the flag, the
// environment, the folder of this machine. Never from the repository: whoever changes a branch
// could change such a file as well. The error says which of the three named it.
func (o *options) trusted(a *kit.App) (proof.Signers, error) {
	path, from := o.keys, "--trusted-keys"
	if path == "" {
		path, from = a.Getenv(keysVariable), keysVariable
	}
	if folder := local.Keys(a.Getenv); path == "" && folder != "" {
		path, from = folder.SignersPath(), "the keys of this machine"
	}
	if path == "" {
		return nil, fmt.Errorf("there are no trusted keys: name their file with --trusted-keys or %s", keysVariable)
	}
	list, err := proof.ReadSigners(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %s does not exist; pfl-forge run makes it for what is merged on this machine, pfl-forge auth init for an installation",
			from, kit.Safe(path))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", from, err)
	}
	return list, nil
}

// document is the answer about one commit, as programs read it.
type document struct {
	// Commit is its name.
	Commit string `json:"commit" yaml:"commit"`
	// OK says that it was made as it should.
	OK bool `json:"ok" yaml:"ok"`
	// SignedBy is the principal whose key signed the commit.
	SignedBy string `json:"signed_by,omitempty" yaml:"signed_by,omitempty"`
	// Project is the project that it was made for, as its statements say.
	Project string `json:"project,omitempty" yaml:"project,omitempty"`
	// Intent is the intent's id.
	Intent string `json:"intent,omitempty" yaml:"intent,omitempty"`
	// Task is the task's id.
	Task string `json:"task,omitempty" yaml:"task,omitempty"`
	// Statements are the ones by trusted keys about this change.
	Statements []statement `json:"statements" yaml:"statements"`
	// Problems say why it is not to be believed.
	Problems []string `json:"problems" yaml:"problems"`
}

// statement is one of a document.
type statement struct {
	// Type is verify, review, plan or approval.
	Type string `json:"type" yaml:"type"`
	// By is the principal whose key signed it.
	By string `json:"by" yaml:"by"`
	// Says has it in words.
	Says string `json:"says" yaml:"says"`
}

// moved ends the words of a statement that was made of the same patch on another parent.
const moved = ", as the same patch on another parent"

// newDocument returns the answer about a commit. Statements and problems are lists also where they
// are empty, so that programs need not tell none from missing.
func newDocument(commit string, r *proof.Report) document {
	d := document{
		Commit: commit, OK: r.OK(), SignedBy: r.SignedBy, Project: r.Task.Project, Intent: r.Task.Intent, Task: r.Task.Task,
		Statements: []statement{}, Problems: append([]string{}, r.Problems...),
	}
	for _, s := range r.Statements {
		kind, says := describe(s.Predicate)
		if s.Moved {
			says += moved
		}
		d.Statements = append(d.Statements, statement{kind, s.By, says})
	}
	return d
}

// describe returns the kind of a statement, and its content in words. Names in it were signed, and
// are texts of others all the same. A kind that this program does not know has neither.
func describe(p proof.Predicate) (kind, says string) {
	switch p := p.(type) {
	case *proof.Verify:
		says = fmt.Sprintf("%s passed", render.Count(len(p.Commands), "command"))
		if p.Together != "" {
			says += ", not on this tree by itself but together with later changes, as tree " + term.Line(p.Together)
		}
		return "verify", says
	case *proof.Review:
		who := strings.TrimSpace(fmt.Sprintf("%s by %s %s", p.Verdict, cmp.Or(p.Agent, "no agent"), p.Model))
		if p.Second {
			who += " as the second reviewer"
		}
		return "review", who
	case *proof.Plan:
		return "plan", fmt.Sprintf("plan %s, run %d", p.Plan, p.Run)
	case *proof.Approval:
		return "approval", fmt.Sprintf("%s %s approved by %s", p.What, p.Hash, p.By)
	}
	return "", ""
}

// run checks the commits, or the push, of the call. The exit code is ExitError if a
// commit was not made as it should.
func run(ctx context.Context, a *kit.App, o *options, args []string) error {
	trusted, err := o.trusted(a)
	if err != nil {
		return err
	}
	repo, err := open(ctx, a)
	if err != nil {
		return err
	}
	defer repo.close()
	c := checker{repo: repo, trusted: trusted, approved: o.approved}
	if o.stdin {
		return c.push(ctx, a, o)
	}
	var answers []document
	for _, arg := range args {
		commits, err := repo.commits(ctx, arg)
		if err != nil {
			return err
		}
		for _, commit := range commits {
			d, err := c.check(ctx, commit)
			if err != nil {
				return err
			}
			answers = append(answers, d)
		}
	}
	return conclude(a, o, answers)
}

// conclude prints the answers, and returns ExitError if one of the commits is not as it should be:
// a range is judged as a whole.
func conclude(a *kit.App, o *options, answers []document) error {
	// A range is judged as a whole: one bad commit in it is enough.
	// It is found out before anything is printed, so that each format ends with the same exit
	// code.
	bad := false
	for i := range answers {
		bad = bad || !answers[i].OK
	}
	names := kit.Names(answers, func(d *document) string { return d.Commit })
	err := a.Print(o.format, answers, names, func() error {
		for i := range answers {
			line(a, &answers[i])
		}
		return nil
	})
	if err == nil && bad {
		return kit.ExitError
	}
	return err
}

// line prints the answer about one commit: one line, and one more for each problem.
func line(a *kit.App, d *document) {
	if d.OK {
		var said, elsewhere []string
		for _, s := range d.Statements {
			if says, is := strings.CutSuffix(s.Says, moved); is {
				elsewhere = append(elsewhere, says)
			} else {
				said = append(said, says)
			}
		}
		if len(elsewhere) > 0 {
			said = append(said, strings.Join(elsewhere, "; ")+moved)
		}
		fmt.Fprintf(a.Out, "ok    %s  %s: %s\n", d.Commit[:12], kit.Safe(d.Task), kit.Safe(strings.Join(said, "; ")))
		return
	}
	fmt.Fprintf(a.Out, "BAD   %s\n", d.Commit[:12])
	for _, p := range d.Problems {
		fmt.Fprintf(a.Out, "      %s\n", kit.Safe(p))
	}
}
