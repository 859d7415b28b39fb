package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/local"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
)

// output adds the flag that chooses how a command prints its data.
func output(cmd *cobra.Command, format *render.Format) {
	*format = render.Table
	cmd.Flags().VarP(format, "output", "o", strings.Join(render.Formats(), ", "))
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(render.Formats(), cobra.ShellCompDirectiveNoFileComp))
}

// complete offers the ids of intents that fit.
func (a *app) complete(fits func(*forge.Summary) bool, most int) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if most > 0 && len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		t, err := a.reader(cmd.Context())
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		defer t.close()
		all, err := t.summaries(cmd.Context())
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var ids []string
		for i := range all {
			if fits(&all[i]) {
				ids = append(ids, cobra.CompletionWithDesc(string(all[i].Key.Intent), safe(all[i].Title)))
			}
		}
		return ids, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeRecipe offers the recipes that the repository's base branch has.
func (a *app) completeRecipe(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	repo, err := local.OpenRepository(cmd.Context(), a.dir)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	base, err := repo.Base(cmd.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return base.Config.RecipeNames(), cobra.ShellCompDirectiveNoFileComp
}

func anyIntent(*forge.Summary) bool { return true }

func needsPerson(s *forge.Summary) bool { return s.Waiting != "" }

func waitsFor(w forge.Waiting) func(*forge.Summary) bool {
	return func(s *forge.Summary) bool { return s.Waiting == w }
}

// intentIDs validates arguments as ids.
func intentIDs(args []string) ([]forge.IntentID, error) {
	ids := make([]forge.IntentID, len(args))
	for i, arg := range args {
		id, err := forge.ParseIntentID(arg)
		if err != nil {
			return nil, usageError{err}
		}
		ids[i] = id
	}
	return ids, nil
}

// atLeast is cobra's check with a sentence that names what is missing.
func atLeast(n int, what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) < n {
			return usageError{missing(what)}
		}
		return nil
	}
}

// between checks the number of arguments.
func between(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := atLeast(least, what)(cmd, args); err != nil {
			return err
		}
		if len(args) > most {
			return usageError{surplus(args[most])}
		}
		return nil
	}
}
