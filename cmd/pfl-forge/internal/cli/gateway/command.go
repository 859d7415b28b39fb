// Package gateway has the command gateway init, which writes the settings of a forge-gateway for one repository at a forge, once it has
// found there that the account may do what a gateway does. It asks no server of NATS.
//
// What it writes is small, and commented for the one who goes on from there: a gateway that listens on this machine alone, one forge, and two
// rules. What it finds missing is told all at once, in the words of the forge's own pages, and nothing is written then.
package gateway

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/gitea"
	"github.com/pfl-forge/pfl-forge/services/gateway/intake"
)

const help = `Write gateway.yaml, forges.yaml and intake.yaml, with which forge-gateway makes intents of the
issues of a repository at Gitea or Forgejo that have a label, and merges by pull requests. For
people, tokens.yaml says what they may decide there.

The forge is asked first whether the token is one, which scopes it has, and whether its account
may administer the repository. What is missing is listed, and nothing is written. The label is
made if the repository has none of that name. Files that exist are never replaced.`

const examples = `  pfl-forge gateway init --gitea https://git.example.com --repository shop/web --token-file gitea.token --person ada
  pfl-forge gateway init --gitea https://git.example.com --repository shop/web --token-file gitea.token --recipe greet --out /etc/pfl-forge`

// options is how the command was called.
type options struct {
	// url is the forge's address, repository is owner/name there, and tokenFile has the token of our account.
	url, repository, tokenFile string
	// project is the id of the project; empty for the name of the repository.
	project string
	// recipe is the name of the recipe that the rules give an intent; empty for the project's agent.
	recipe string
	label  string
	people []string // logins, which are the names of the people as well
	out    string   // the folder that the files are written to
}

// Command returns the command gateway, whose only subcommand is init.
func Command(a *kit.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "gateway",
		Short: "set up a gateway, through which the issues of a forge become intents",
		Args:  kit.KnownCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(initCommand(a))
	return cmd
}

// initCommand returns the command gateway init.
func initCommand(a *kit.App) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:     "init",
		Short:   "write a gateway's settings for a repository of Gitea or Forgejo, and say which rights are missing there",
		Long:    help,
		Example: examples,
		Args:    kit.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return kit.Usage(err)
			}
			return initialise(cmd.Context(), a, &o)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.url, "gitea", "", "`address` of the forge, such as https://git.example.com")
	flags.StringVar(&o.repository, "repository", "", "the repository there, as `owner/name`")
	flags.StringVar(&o.tokenFile, "token-file", "", "`file` with the token of the gateway's account there")
	flags.StringVar(&o.project, "project", "", "`id` of the project; default: the name of the repository, in small letters")
	flags.StringVar(&o.recipe, "recipe", "", "`name` of the recipe that makes the changes; default: the project's agent makes them")
	flags.StringVar(&o.label, "label", "forge", "the `label` by which an issue becomes an intent")
	kit.ListVar(flags, &o.people, "person", nil, "`login` of an account whose owner may decide in comments; may be repeated")
	flags.StringVar(&o.out, "out", ".", "`folder` to write to")
	_ = cmd.MarkFlagFilename("token-file")
	_ = cmd.MarkFlagDirname("out")
	return cmd
}

// check refuses flags with which no gateway could be started, and fills in the project.
func (o *options) check() error {
	for flag, value := range map[string]string{
		"--gitea, the address of the forge": o.url, "--repository, as owner/name": o.repository, "--token-file, with the token of the account": o.tokenFile,
	} {
		if value == "" {
			return kit.Missing(flag)
		}
	}
	if err := intake.CheckRepository(o.repository); err != nil {
		return fmt.Errorf("--repository: %w", err)
	}
	if o.project == "" {
		_, name, _ := strings.Cut(o.repository, "/")
		o.project = strings.ToLower(name)
	}
	if _, err := forge.ParseProjectID(o.project); err != nil {
		return fmt.Errorf("--project: %w", err)
	}
	return nil
}

// initialise asks the forge, and writes the files.
func initialise(ctx context.Context, a *kit.App, o *options) error {
	// A relative token file is meant from where the command is typed, and in the settings from their folder.
	token, err := filepath.Abs(o.tokenFile)
	if err != nil {
		return err
	}
	c, err := gitea.New(gitea.Config{URL: o.url, TokenFile: token})
	if err != nil {
		return err
	}
	defer c.Close()
	lacks, err := gitea.Lacks(ctx, c, o.repository)
	if err != nil {
		return fmt.Errorf("--gitea: %w", err)
	}
	if len(lacks) > 0 {
		return fmt.Errorf("nothing is written, since at %s is missing:\n- %s", kit.Safe(o.url), kit.Safe(strings.Join(lacks, "\n- ")))
	}
	people, err := numbers(ctx, c, o)
	if err != nil {
		return err
	}
	made, err := gitea.MakeLabel(ctx, c, o.repository, o.label)
	if err != nil {
		return fmt.Errorf("--label: %w", err)
	}
	if made {
		a.Say("made the label %s in %s", kit.Safe(o.label), o.repository)
	}
	if err := write(a, o, o.settings(token, people)); err != nil {
		return err
	}
	a.Say("next: commit a pfl-forge.yaml in %s with policy.trusted_origins: [%s] and merge.how: pull_request,\n"+
		"then start forge-gateway with --gateway %s", o.repository, forgeName, kit.Safe(filepath.Join(o.out, "gateway.yaml")))
	return nil
}

// person is one who may decide, with the number of the account.
type person struct {
	login string
	id    int64
}

// numbers returns the people with the numbers of their accounts, which stay when a login is given to another.
func numbers(ctx context.Context, f forges.Forge, o *options) (list []person, err error) {
	for _, login := range o.people {
		switch got, err := f.Account(ctx, o.repository, login); {
		case errors.Is(err, forges.ErrNotFound):
			return nil, fmt.Errorf("--person: the forge has no account %s", kit.Safe(login))
		case err != nil:
			return nil, fmt.Errorf("--person %s: %w", kit.Safe(login), err)
		case !got.Permission.Includes(intake.Write):
			return nil, fmt.Errorf("--person: %s may not write in %s, and so decide nothing: the right is %s", kit.Safe(login), o.repository, got.Permission)
		default:
			list = append(list, person{got.Login, got.ID})
		}
	}
	return list, nil
}

// write writes the files, of which none may be there.
func write(a *kit.App, o *options, files []file) error {
	if err := os.MkdirAll(o.out, 0o700); err != nil {
		return err
	}
	for _, f := range files {
		if _, err := os.Lstat(filepath.Join(o.out, f.name)); err == nil {
			return fmt.Errorf("--out: %s is there already, and stays as it is: take it away, or give another folder", kit.Safe(filepath.Join(o.out, f.name)))
		}
	}
	for _, f := range files {
		path := filepath.Join(o.out, f.name)
		file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		_, err = file.WriteString(f.text)
		if err := errors.Join(err, file.Close()); err != nil {
			return err
		}
		fmt.Fprintf(a.Out, "%s\n", kit.Safe(path))
	}
	return nil
}
