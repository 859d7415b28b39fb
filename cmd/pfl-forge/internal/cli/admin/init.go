// Package admin is the commands about the program itself: init prepares a
// repository for it, version says what is running.
package admin

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/trusting"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/local"
	"github.com/pfl-forge/pfl-forge/config"
	"github.com/pfl-forge/pfl-forge/forgedir"
)

// InitCommand returns the command init. It has no flags: what it writes is all commented out, and
// the person takes from it what they need.
func InitCommand(a *kit.App) *cobra.Command {
	return &cobra.Command{
		Use:   "init",
		Short: "prepare this repository: pfl-forge.yaml, a folder for drafts",
		Long: "Write a pfl-forge.yaml with everything commented out, and a .forge folder with an example draft.\n" +
			"Existing files are not changed.",
		Args: kit.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return prepare(cmd.Context(), a) },
	}
}

// prepare writes the files that a repository needs, and leaves those alone that are there.
//
// The names of files that were made are printed to standard output, a line each, so none of them
// is the sign that all were there.
//
// A pfl-forge.yaml that it made is noted as trusted on this machine (ADR-0045): it is this
// program's own text, and the first run would otherwise ask about it. That this fails is only
// told.
func prepare(ctx context.Context, a *kit.App) error {
	repo, err := local.OpenRepository(ctx, a.Dir)
	if err != nil {
		return err
	}
	files, err := forgedir.Open(repo.Root, forgedir.Options{Project: repo.Project, Actor: repo.Actor, Log: a.Log()})
	if err != nil {
		return err
	}
	made, err := files.Init()
	if closeErr := files.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	if slices.Contains(made, config.FileName) {
		if err := trusting.Made(a, repo, config.Default()); err != nil {
			a.Say("the next run will ask whether what you wrote into %s may run: %s", config.FileName, kit.Safe(err.Error()))
		}
	}
	for _, path := range made {
		fmt.Fprintf(a.Out, "%s\n", path)
	}
	if len(made) == 0 {
		a.Say("nothing to do: all files exist already")
	}
	a.Say("next: set verify in pfl-forge.yaml and commit it (runs read the committed version)\n" +
		"then: write .forge/intent-drafts/<id>.md, or use pfl-forge create; and pfl-forge run")
	return nil
}
