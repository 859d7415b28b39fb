// Package auth makes the credentials of an installation: an nkey for each account,
// the permissions of all for the nats-server, and certificates.
//
// An installation is a set of secrets, each with a few entries. plan.go decides
// which of them are new; package secrets reads and writes them as plain files or as
// Secrets, and package authority makes the certificates. The permissions are those of
// package bus/access.
//
// Three commands. init makes keys, or renews some: it reads what exists into a plan, decides,
// and writes only the secrets that have changed. sign signs one message for a system that has
// no library of ours. serve answers the nats-server about people who log in (ADR-0059).
//
// No seed is ever printed but in a Secret that was asked for, and report.go has the
// document without any. The order of writing is part of the contract: trusted keys
// first, permissions last (package secrets), so that a call that is cut off leaves
// a server that works. The guide is docs/guide-security.md; the tests here are of
// what init and sign write; the permissions are tested with package bus/access.
package auth

import (
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/spf13/cobra"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/access"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/auth/secrets"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
	"github.com/pfl-forge/pfl-forge/internal/pattern"
)

const initHelp = `Make the credentials of an organisation's pfl-forge: an nkey for each of the five services,
for a person ("operator") and for a system that submits intents ("submitter"), the permissions of
all as a file for nats-server, and a certificate for it by an authority of its own.

Without --kubernetes the files go to the folder of --out, with an example nats.conf. With it
they are Secrets, printed as YAML for kubectl, or written to the folder of --out.

What exists is kept. --role renews the key of one account, with "server" the certificate, or with "console" the
key of the sessions of the gateway's console, which ends them all;
--person, --system and --follower add accounts, a person's with --no-clean without that right;
--logins lets in people who log in elsewhere, see auth serve; --backups adds the account that copies
and restores all streams, whose key is worth as much as the server; --gateway adds the account of
forge-gateway, which acts for people and systems, with its own name beside theirs; --force renews everything.
Give a renewed key to its user and reload the server: it then refuses the old one, and services continue with the new one.
A server with --logins has to be restarted instead: nats-server reads its auth callout settings only at its start.`

const initExample = `  pfl-forge auth init --out /etc/pfl-forge/nats --host nats.example.com
  pfl-forge auth init --out /etc/pfl-forge/nats --person ada --projects shop
  pfl-forge auth init --kubernetes --namespace pfl-forge | kubectl create -f -
  kubectl -n pfl-forge get secrets -l app.kubernetes.io/part-of=pfl-forge -o json |
    pfl-forge auth init --kubernetes --role implementer --from - | kubectl apply --server-side --force-conflicts -f -`

// Command returns the command auth with those below it.
func Command(a *kit.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "auth",
		Short: "make keys, permissions and certificates of an organisation's installation",
		Args:  kit.KnownCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(initCommand(a), signCommand(a), serveCommand(a))
	return cmd
}

// options are the flags of auth init.
// They are as they were typed. check has been called before anything else reads them.
type options struct {
	// Where the secrets are read from and written to: the folder out, or with
	// kubernetes Secrets, of which from names the file with those that exist.
	kubernetes bool
	namespace  string
	out        string
	from       string

	// Which accounts are renewed or added. renew has names for --role; projects and
	// noClean are about the new accounts alone. force renews all, and excludes renew.
	renew     []string
	people    []string
	systems   []string
	followers []string
	projects  []string
	noClean   bool
	logins    bool
	backups   bool
	gateway   bool
	force     bool

	// The server's certificate: further names, an authority that is given with
	// its key, or with noTLS none.
	hosts         []string
	caCert, caKey string
	noTLS         bool

	format render.Format
}

// initCommand returns the command auth init.
// It needs no server and no repository, and reads no flag of a connection.
func initCommand(a *kit.App) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:     "init",
		Short:   "make nkeys, permissions and certificates, or renew some of them",
		Long:    initHelp,
		Example: initExample,
		Args:    kit.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := o.check(); err != nil {
				return kit.Usage(err)
			}
			return initialise(a, &o)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.kubernetes, "kubernetes", false, "as Secrets")
	flags.StringVar(&o.namespace, "namespace", "pfl-forge", "`namespace` of the Secrets, and in the names of the server")
	flags.StringVar(&o.out, "out", "", "`folder` to write to; it is made if it is missing")
	flags.StringVar(&o.from, "from", "", "with --kubernetes: `file` with the Secrets that exist, as kubectl get -o json prints them; - for standard input")
	kit.ListVar(flags, &o.renew, "role", nil, "renew the key of this `account`, of \"server\" the certificate, of \"console\" its sessions'; may be repeated")
	kit.ListVar(flags, &o.people, "person", nil, "add an account for a person of this `name`; may be repeated")
	kit.ListVar(flags, &o.systems, "system", nil, "add an account for a system of this `name` that submits intents; may be repeated")
	kit.ListVar(flags, &o.followers, "follower", nil, "add an account for a system of this `name` that follows changes; may be repeated")
	kit.ListVar(flags, &o.projects, "projects", nil, "`ids` of the projects that new accounts of people and systems may speak about; default: all")
	flags.BoolVar(&o.noClean, "no-clean", false, "with --person: without the right to remove the leftovers of finished intents")
	flags.BoolVar(&o.logins, "logins", false, "add the account auth, for pfl-forge auth serve, and have the server ask it about everybody else")
	flags.BoolVar(&o.backups, "backups", false, "add the account backup, for pfl-forge backup and restore")
	flags.BoolVar(&o.gateway, "gateway", false, "add the account gateway, for forge-gateway, through which people and systems come by HTTP")
	flags.BoolVar(&o.force, "force", false, "renew everything that exists")
	kit.ListVar(flags, &o.hosts, "host", nil, "further `name` or address of the server, for its certificate; may be repeated")
	flags.StringVar(&o.caCert, "ca-cert", "", "`file` with the certificate of an authority to use instead of a new one, with --ca-key")
	flags.StringVar(&o.caKey, "ca-key", "", "`file` with its key")
	flags.BoolVar(&o.noTLS, "no-tls-certs", false, "make no certificates: they come from elsewhere, such as cert-manager")
	kit.OutputFlag(cmd, &o.format)
	cmd.MarkFlagsMutuallyExclusive("no-tls-certs", "ca-cert")
	cmd.MarkFlagsMutuallyExclusive("no-tls-certs", "host")
	cmd.MarkFlagsMutuallyExclusive("force", "role")
	cmd.MarkFlagsRequiredTogether("ca-cert", "ca-key")
	_ = cmd.MarkFlagDirname("out")
	for _, name := range []string{"from", "ca-cert", "ca-key"} {
		_ = cmd.MarkFlagFilename(name)
	}
	_ = cmd.RegisterFlagCompletionFunc("role", cobra.FixedCompletions(renewable(), cobra.ShellCompDirectiveNoFileComp))
	for _, name := range []string{"namespace", "person", "system", "follower", "projects", "host"} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
	return cmd
}

// renewable returns the names that --role takes in every installation. They are
// sorted, for completion alone: accounts of people and systems can be named as
// well, and are not known before the files are read.
func renewable() []string {
	names := []string{secrets.Server, consoleRole, string(access.Operator), string(access.Submitter)}
	for _, role := range access.Services() {
		names = append(names, string(role))
	}
	slices.Sort(names)
	return names
}

// hostNames matches names of servers, of which the first part may be a wildcard.
var hostNames = pattern.New(`^(\*\.)?[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*\.?$`)

// check refuses flags that make no sense together. Every error names its flag.
// Names of accounts and projects are checked as well, so that nothing is
// written before the last of them is known to be good.
func (o *options) check() error {
	switch {
	case !o.kubernetes && o.out == "":
		return kit.Missing("--out, the folder to write to, or --kubernetes")
	case o.from != "" && !o.kubernetes:
		return errors.New("--from needs --kubernetes; plain files are read from the folder of --out")
	case o.from != "" && o.out != "":
		return errors.New("--from and --out cannot be given together: what exists is read from one place")
	case o.kubernetes && o.out == "" && o.format.Data():
		return errors.New("--output json or yaml needs --out: without it the Secrets themselves are printed")
	case o.noClean && len(o.people) == 0:
		return errors.New("--no-clean says what a new account may not: give --person as well")
	case !secrets.IsNamespace(o.namespace):
		return errors.New("--namespace: use a-z, 0-9 and hyphens, at most 63")
	}
	for _, host := range o.hosts {
		if net.ParseIP(host) == nil && !hostNames.MatchString(host) {
			return fmt.Errorf("--host: %q is no name and no address of a server", host)
		}
	}
	_, err := o.accounts()
	return err
}

// accounts returns the accounts that the flags add. They are in the order of the
// flags: people, systems, followers. All of them get the projects of --projects.
func (o *options) accounts() ([]access.Account, error) {
	var projects []forge.ProjectID
	for _, p := range o.projects {
		id, err := forge.ParseProjectID(p)
		if err != nil {
			return nil, err
		}
		projects = append(projects, id)
	}
	var list []access.Account
	for _, group := range []struct {
		flag  string
		role  access.Role
		names []string
	}{
		{"--person", access.Operator, o.people}, {"--system", access.Submitter, o.systems}, {"--follower", access.Follower, o.followers},
	} {
		for _, name := range group.names {
			account, err := access.NewAccount(group.role, name, projects...)
			if err != nil {
				return nil, errors.New(group.flag + ": " + err.Error())
			}
			account.NoClean = o.noClean && group.role == access.Operator
			list = append(list, account)
		}
	}
	return list, nil
}

// initialise makes the secrets that are missing or to be renewed, and writes them.
// Nothing is written if the plan has an error.
func initialise(a *kit.App, o *options) error {
	var place secrets.Store = &secrets.Folder{Path: o.out}
	if o.kubernetes {
		place = &secrets.Cluster{Namespace: o.namespace, Folder: o.out, From: o.from, In: a.In, Out: a.Out}
	}
	before, err := place.Read()
	if err != nil {
		return err
	}
	p, err := newPlan(o, before)
	if err != nil {
		return err
	}
	written, err := place.Write(p.changed, p.whole)
	if err != nil {
		return err
	}
	return report(a, o, p, written)
}
