// Package complete has the shell complete what a command takes: ids of intents
// and tasks, names of recipes and checks.
//
// A completion opens the project as the command itself would, reads, and closes
// it. It prints nothing: where that does not work the shell offers nothing, and
// the command says why when it is run.
package complete

import (
	"github.com/spf13/cobra"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/target"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/local"
	"github.com/pfl-forge/pfl-forge/config"
)

// Intents completes arguments with the ids of the intents that fit. Most bounds how many
// arguments there are; 0 means any number.
func Intents(a *kit.App, fits func(*forge.Summary) bool, most int) cobra.CompletionFunc {
	return ids(a, most, func(s *forge.Summary) []string {
		if !fits(s) {
			return nil
		}
		return []string{described(s)}
	})
}

// IntentsAndTasks completes arguments with the ids of all intents and of their tasks. Most
// bounds how many arguments there are; 0 means any number.
func IntentsAndTasks(a *kit.App, most int) cobra.CompletionFunc {
	return ids(a, most, func(s *forge.Summary) []string {
		list := []string{described(s)}
		for n := range s.TaskCount {
			list = append(list, string(forge.NewTaskID(s.Key.Intent, n+1)))
		}
		return list
	})
}

// ids completes arguments with what a function returns for each intent.
func ids(a *kit.App, most int, of func(*forge.Summary) []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if most > 0 && len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		t, err := target.Reader(cmd.Context(), a)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		defer t.Close()
		all, err := t.Summaries(cmd.Context())
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var list []string
		for i := range all {
			list = append(list, of(&all[i])...)
		}
		return list, cobra.ShellCompDirectiveNoFileComp
	}
}

// described returns an intent's id with its title as the shell shows it.
func described(s *forge.Summary) string {
	return cobra.CompletionWithDesc(string(s.Key.Intent), kit.Safe(s.Title))
}

// AnyIntent fits every intent.
func AnyIntent(*forge.Summary) bool { return true }

// Recipes completes a flag with the names of the recipes that the repository's base branch has.
func Recipes(a *kit.App) cobra.CompletionFunc { return named(a, (*config.Project).RecipeNames) }

// Checks completes the names of the project's checks.
func Checks(a *kit.App) cobra.CompletionFunc { return named(a, (*config.Project).CheckNames) }

// named completes names that the project's configuration has.
func named(a *kit.App, names func(*config.Project) []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		repo, err := local.OpenRepository(cmd.Context(), a.Dir)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		base, err := repo.Base(cmd.Context())
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return names(base.Config), cobra.ShellCompDirectiveNoFileComp
	}
}
