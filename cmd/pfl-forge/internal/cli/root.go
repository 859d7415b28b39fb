package cli

import (
	"github.com/spf13/cobra"
)

const longHelp = `pfl-forge turns intents, requests for a change, into reviewed commits on a
repository's main branch.

In a repository it works by itself: write what you want, run it, and look at what
waits for you. With --server it talks to an organisation's pfl-forge.`

// root returns the whole command tree.
func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "pfl-forge",
		Short:         "from an intent to a reviewed commit",
		Long:          longHelp,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          knownCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(flagError)
	flags := root.PersistentFlags()
	flags.StringVarP(&a.dir, "repo", "C", ".", "the `folder` of the repository")
	flags.StringVar(&a.server, "server", "", "`URL` of an organisation's NATS, instead of the repository's own")
	flags.StringVar(&a.profile, "context", "", "`name` of a NATS context that says how to connect, instead of --server")
	flags.StringVar(&a.tokenFile, "token-file", "", "`file` that holds a NATS token, with --server")
	flags.StringVar(&a.creds, "creds", "", "`file` with NATS credentials, with --server")
	flags.StringVar(&a.project, "project", "", "`id` of the project, with --server; the folder's name if left out")
	flags.BoolVarP(&a.verbose, "verbose", "v", false, "log to standard error")
	root.MarkFlagsMutuallyExclusive("server", "context")
	root.MarkFlagsMutuallyExclusive("token-file", "creds")

	root.AddGroup(
		&cobra.Group{ID: groupWork, Title: "Work:"},
		&cobra.Group{ID: groupLook, Title: "Look:"},
		&cobra.Group{ID: groupDecide, Title: "Decide:"},
		&cobra.Group{ID: groupOther, Title: "Other:"},
	)
	for id, commands := range map[string][]*cobra.Command{
		groupWork: {a.initCommand(), a.createCommand(), a.goalCommand(), a.auditCommand(), a.runCommand(), a.reflectCommand(), a.operatorCommand()},
		groupLook: {
			a.statusCommand(), a.watchCommand(), a.inboxCommand(), a.clarificationsCommand(), a.showCommand(), a.logsCommand(), a.costsCommand(),
			a.historyCommand(),
		},
		groupDecide: {a.approveCommand(), a.rejectCommand(), a.answerCommand(), a.retryCommand(), a.pauseCommand(), a.resumeCommand(), a.cancelCommand()},
		groupOther:  {a.cleanCommand(), a.demoCommand(), a.doctorCommand(), a.versionCommand()},
	} {
		for _, c := range commands {
			c.GroupID = id
			root.AddCommand(c)
		}
	}
	root.SetHelpCommandGroupID(groupOther)
	root.SetCompletionCommandGroupID(groupOther)
	return root
}

const (
	groupWork   = "work"
	groupLook   = "look"
	groupDecide = "decide"
	groupOther  = "other"
)
