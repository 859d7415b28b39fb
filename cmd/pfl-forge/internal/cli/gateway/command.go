// Package gateway has the command gateway init, which writes the settings of a
// forge-gateway for one repository at a forge, once it has found there that the
// account may do what a gateway does. It asks no server of NATS.
//
// What it writes is small, and commented for the one who goes on from there: a gateway
// that listens on this machine alone, one forge, and two rules. What it finds missing is
// told all at once, in the words of the forge's own pages, and nothing is written then.
package gateway

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
	"github.com/pfl-forge/pfl-forge/services/gateway/intake"
)

const help = `Write gateway.yaml, forges.yaml and intake.yaml, with which forge-gateway makes intents of the
issues of a repository at Gitea, Forgejo, GitHub or GitLab that have a label, and merges by pull
requests. For people, tokens.yaml says what they may decide there.

The forge is asked first whether it knows the token or the App, and which rights these have in the
repository. What is missing is listed, and nothing is written. The label is made if the repository
has none of that name. Files that exist are never replaced.`

const examples = `  pfl-forge gateway init --gitea https://git.example.com --repository shop/web --token-file gitea.token --person ada
  pfl-forge gateway init --github https://github.com --repository shop/web --app Iv23liExample --key-file github.pem --person ada
  pfl-forge gateway init --gitlab https://gitlab.com --repository shop/front/web --token-file gitlab.token --recipe greet --out /etc/pfl-forge`

// options is how the command was called.
type options struct {
	// urls has the forge's address by its kind: one of them is not empty.
	// repository is owner/name there.
	urls       map[string]*string
	repository string
	// tokenFile has the token of our account. In its place, app is the id of an
	// App of GitHub, and keyFile has its key.
	tokenFile, app, keyFile string
	// project is the id of the project; empty for the name of the repository.
	project string
	// recipe is the name of the recipe that the rules give an intent; empty for
	// the project's agent.
	recipe string
	// The rest stands alone: the label of issues, those who may decide, and where the files go.
	label  string
	people []string // logins, which are the names of the people as well
	out    string   // the folder that the files are written to
}

// Command returns the command gateway. Init is its only subcommand: what a gateway's settings say
// later is changed in an editor, with the guides that the files name.
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

// initCommand returns the command gateway init. Each kind of forge is a flag with its address, so
// that a call names exactly one.
func initCommand(a *kit.App) *cobra.Command {
	o := options{urls: map[string]*string{}}
	cmd := &cobra.Command{
		Use:     "init",
		Short:   "write a gateway's settings for a repository of a forge, and say which rights are missing there",
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
	o.urls[kindGitea] = flags.String(kindGitea, "", "`address` of a Gitea or Forgejo, such as https://git.example.com")
	o.urls[kindGitHub] = flags.String(kindGitHub, "", "`address` of GitHub, https://github.com, or of an Enterprise Server")
	o.urls[kindGitLab] = flags.String(kindGitLab, "", "`address` of GitLab, https://gitlab.com, or of an instance of your own")
	flags.StringVar(&o.repository, "repository", "", "the repository there, as `owner/name`; of GitLab also group/subgroup/name")
	flags.StringVar(&o.tokenFile, "token-file", "", "`file` with the token of the gateway's account there")
	flags.StringVar(&o.app, "app", "", "client `id` of a GitHub App, in place of an account with a token")
	flags.StringVar(&o.keyFile, "key-file", "", "`file` with the private key of that App")
	flags.StringVar(&o.project, "project", "", "`id` of the project; default: the name of the repository, in small letters")
	flags.StringVar(&o.recipe, "recipe", "", "`name` of the recipe that makes the changes; default: the project's agent makes them")
	flags.StringVar(&o.label, "label", "forge", "the `label` by which an issue becomes an intent")
	kit.ListVar(flags, &o.people, "person", nil, "`login` of an account whose owner may decide in comments; may be repeated")
	flags.StringVar(&o.out, "out", ".", "`folder` to write to")
	cmd.MarkFlagsMutuallyExclusive(kindGitea, kindGitHub, kindGitLab)
	_ = cmd.MarkFlagFilename("token-file")
	_ = cmd.MarkFlagFilename("key-file")
	_ = cmd.MarkFlagDirname("out")
	return cmd
}

// check refuses flags with which no gateway could be started, and fills in the project.
//
// Nothing is asked here: what only the forge knows, such as whether a login exists, is found out
// by ask and numbers. The order is that in which a person types the flags, so that the first thing
// that is missing is named first. Only one way to log in counts: a token, or an App with its key.
func (o *options) check() error {
	kind := o.kind()
	switch {
	case kind == "":
		return kit.Missing("one of --gitea, --github and --gitlab, with the address of the forge,")
	case o.repository == "":
		return kit.Missing("--repository, as owner/name")
	case o.app == "" && o.keyFile == "" && o.tokenFile == "":
		return kit.Missing("--token-file, with the token of the account")
	case o.app == "" && o.keyFile == "":
	case kind != kindGitHub:
		return fmt.Errorf("--app: only %s has Apps", kindGitHub)
	case o.app == "":
		return kit.Missing("--app, the id of the App whose key it is")
	case o.keyFile == "":
		return kit.Missing("--key-file, with the private key of the App")
	case o.tokenFile != "":
		return errors.New("--token-file: there is --app as well; give one of both")
	}
	// GitLab alone has repositories in groups of groups.
	is := intake.CheckRepository
	if kind == kindGitLab {
		is = intake.CheckNested
	}
	if err := is(o.repository); err != nil {
		return fmt.Errorf("--repository: %w", err)
	}
	if o.project == "" {
		o.project = strings.ToLower(path.Base(o.repository))
	}
	if _, err := forge.ParseProjectID(o.project); err != nil {
		return fmt.Errorf("--project: %w", err)
	}
	return nil
}

// kind returns the kind of the forge; empty unless the address of exactly one is given.
func (o *options) kind() (kind string) {
	for k, url := range o.urls {
		switch {
		case *url == "":
		case kind != "":
			return ""
		default:
			kind = k
		}
	}
	return kind
}

// url returns the address of the forge.
func (o *options) url() string { return *o.urls[o.kind()] }

// initialise asks the forge, makes the label and writes the files, in this order: what is missing
// at the forge ends it before anything is changed there or here, and a label that was made is
// found by the next call, which may be needed where the files cannot be written.
func initialise(ctx context.Context, a *kit.App, o *options) error {
	p, err := ask(ctx, o)
	if err != nil {
		return err
	}
	if len(p.lacks) > 0 {
		return fmt.Errorf("nothing was written; missing at %s:\n- %s", kit.Safe(o.url()), kit.Safe(strings.Join(p.lacks, "\n- ")))
	}
	defer p.Close()
	people, err := numbers(ctx, p, o)
	if err != nil {
		return err
	}
	made, err := p.makeLabel(ctx, o.repository, o.label)
	if err != nil {
		return fmt.Errorf("--label: %w", err)
	}
	if made {
		a.Say("made the label %s in %s", kit.Safe(o.label), o.repository)
	}
	if err := write(a, o, o.settings(p.as, people)); err != nil {
		return err
	}
	a.Say("next: commit a pfl-forge.yaml in %s with policy.trusted_origins: [%s] and merge.how: pull_request,\n"+
		"then start forge-gateway with --gateway %s", o.repository, o.kind(), kit.Safe(filepath.Join(o.out, "gateway.yaml")))
	return nil
}

// person is one who may decide, by the login that was typed as the forge spells it, and the number
// of the account.
type person struct {
	login string
	id    int64
}

// numbers returns the people with the numbers of their accounts. A number stays when a login is
// given to another person; the login is kept for readers of the file.
//
// A login that the forge does not know is an error, and so is one without the right to write in
// the repository: a gateway would refuse each decision of theirs.
func numbers(ctx context.Context, f forges.Forge, o *options) (list []person, err error) {
	for _, login := range o.people {
		switch got, err := f.Account(ctx, o.repository, login); {
		case errors.Is(err, forges.ErrNotFound):
			return nil, fmt.Errorf("--person: the forge has no account %s", kit.Safe(login))
		case err != nil:
			return nil, fmt.Errorf("--person %s: %w", kit.Safe(login), err)
		case !got.Permission.Includes(intake.Write):
			return nil, fmt.Errorf("--person: %s has no write access to %s, only %s, so may decide nothing there", kit.Safe(login), o.repository, got.Permission)
		default:
			list = append(list, person{got.Login, got.ID})
		}
	}
	return list, nil
}

// write writes the files, for this user alone, and prints their paths. None of them may be there,
// and that is looked at for all before the first is written: half of a gateway's settings from
// here and half from elsewhere would not fit together. One that appears meanwhile is not replaced
// either.
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
