package cli

import (
	"fmt"
	"strings"

	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/doctor"
	"github.com/spf13/cobra"

	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/admin"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/answer"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/audit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/auditlog"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/auth"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/backups"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/checks"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/clean"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/control"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/costs"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/create"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/demo"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/diff"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/gateway"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/goal"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/health"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/history"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/inbox"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/intake"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/knowledge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/login"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/logs"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/operator"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/queue"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/rejudge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/replay"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/run"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/schedules"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/settings"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/show"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/status"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/trusting"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/verifycommit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/watch"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/web"
)

const longHelp = `pfl-forge turns intents, requests for a change, into reviewed commits on a
repository's main branch.

In a repository it works by itself: write what you want, run it, and look at what
waits for you. With --server it talks to an organisation's pfl-forge: over NATS
(tls://...), or with a token through its gateway (https://...).`

// newRoot returns the whole command tree.
func newRoot(a *kit.App) *cobra.Command {
	root := &cobra.Command{
		Use:           "pfl-forge",
		Short:         "from an intent to a reviewed commit",
		Long:          longHelp,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          kit.KnownCommand,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			a.Remember()
			if name := a.Complete(a.Getenv); name != "" {
				a.Say("using the selected NATS context %s", kit.Safe(name))
			}
			return checkHTTP(a, cmd)
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(flagError)
	a.AddFlags(root)
	root.AddGroup(
		&cobra.Group{ID: groupWork, Title: "Work:"},
		&cobra.Group{ID: groupLook, Title: "Look:"},
		&cobra.Group{ID: groupDecide, Title: "Decide:"},
		&cobra.Group{ID: groupOther, Title: "Other:"},
	)
	for id, commands := range map[string][]*cobra.Command{
		groupWork: {
			admin.InitCommand(a), create.Command(a), goal.Command(a), audit.Command(a), run.Command(a), schedules.Command(a),
			control.ReflectCommand(a), operator.Command(a),
		},
		groupLook: {
			status.Command(a), watch.Command(a), inbox.Command(a), answer.ClarificationsCommand(a), show.Command(a), diff.Command(a), logs.Command(a),
			costs.Command(a), history.Command(a), knowledge.Command(a), auditlog.Command(a), replay.Command(a), rejudge.Command(a),
			checks.Command(a), settings.Command(a), health.Command(a), queue.Command(a), web.Command(a),
		},
		groupDecide: {
			control.ApproveCommand(a), control.RequestChangesCommand(a), control.RejectCommand(a), answer.Command(a), control.RetryCommand(a),
			control.PauseCommand(a), control.ResumeCommand(a), control.CancelCommand(a),
		},
		groupOther: {
			auth.Command(a), backups.BackupCommand(a), backups.RestoreCommand(a), backups.RecoverCommand(a), clean.Command(a),
			demo.Command(a), doctor.Command(a), gateway.Command(a), intake.Command(a), trusting.Command(a), verifycommit.Command(a), admin.VersionCommand(a),
			login.Command(a), login.OutCommand(a), login.WhoCommand(a),
		},
	} {
		for _, c := range commands {
			c.GroupID = id
			root.AddCommand(c)
		}
	}
	root.SetHelpCommandGroupID(groupOther)
	root.SetCompletionCommandGroupID(groupOther)
	plain(root)
	return root
}

// The groups under which help lists the commands.
const (
	groupWork   = "work"
	groupLook   = "look"
	groupDecide = "decide"
	groupOther  = "other"
)

// serverFlags are the flags that a person needs who works with an
// organisation's server. Only the help of pfl-forge itself has them.
var serverFlags = []string{"context", "token-file", "creds", "nkey", "tls-ca", "tls-cert", "tls-key", "person", "project", "trace-url"}

// plain has the help of all commands look alike, and without the flags of a
// server, of which one line says where they are.
func plain(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		switch c.Name() {
		case "help":
			c.Short = "help about any command"
		case "completion":
			c.Short = "print the script with which a shell completes commands"
		}
	}
	show := root.HelpFunc()
	root.SetHelpFunc(func(c *cobra.Command, args []string) {
		if c.Long == "" && c.Short != "" {
			c.Long = strings.ToUpper(c.Short[:1]) + c.Short[1:] + "."
		}
		if c == root {
			show(c, args)
			return
		}
		for _, name := range serverFlags {
			root.PersistentFlags().Lookup(name).Hidden = true
		}
		show(c, args)
		fmt.Fprintln(c.OutOrStdout(), "\nFlags for the server of an organisation: pfl-forge --help")
	})
}
