package local

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/config"
	"github.com/pfl-forge/pfl-forge/forgedir"
)

// CheckNames makes sure that the agent and the recipe of an intent, if it names one,
// exist, and that the recipe takes the values. The error is a *forge.FieldError.
func CheckNames(cfg *config.Project, i *forge.Intent) error {
	if known := cfg.AgentNames(); i.Agent != "" && !slices.Contains(known, i.Agent) {
		return &forge.FieldError{Field: "agent", Reason: fmt.Sprintf("is %q; it can be %s", i.Agent, strings.Join(known, " or "))}
	}
	if i.Recipe == "" {
		return nil
	}
	recipe, ok := cfg.Recipes[i.Recipe]
	if !ok {
		hint := "the committed " + config.FileName + " has none"
		if closest := cfg.ClosestRecipe(i.Recipe); closest != "" {
			hint = "did you mean " + closest + "?"
		} else if names := cfg.RecipeNames(); len(names) > 0 {
			hint = "there are " + strings.Join(names, ", ")
		}
		return &forge.FieldError{Field: "recipe", Reason: fmt.Sprintf("there is no recipe %q; %s", i.Recipe, hint)}
	}
	for name := range i.With {
		if !slices.ContainsFunc(recipe.Params, func(p config.Param) bool { return p.Name == name }) {
			return &forge.FieldError{Field: "with", Reason: fmt.Sprintf("recipe %s has no parameter %s", i.Recipe, name)}
		}
	}
	return nil
}

// withNames returns the inputs whose agents and recipes exist on the base branch, and
// the problems of the others. If the branch cannot be read, the analysis finds the
// problems.
func (d *filesSync) withNames(ctx context.Context, inputs []forgedir.Input) ([]forgedir.Input, []forgedir.Problem) {
	names := func(in forgedir.Input) bool {
		return in.Draft() != nil && (in.Draft().Recipe != "" || in.Draft().Agent != "")
	}
	if d.branch == "" || !slices.ContainsFunc(inputs, names) {
		return inputs, nil
	}
	base, err := d.repo.base(ctx, d.branch)
	if err != nil {
		return inputs, nil
	}
	return CheckAllNames(base.Config, inputs)
}

// CheckAllNames returns the inputs whose agents and recipes exist, and the problems
// of the others.
func CheckAllNames(cfg *config.Project, inputs []forgedir.Input) (good []forgedir.Input, bad []forgedir.Problem) {
	for _, in := range inputs {
		if draft := in.Draft(); draft != nil {
			if wrong, ok := errors.AsType[*forge.FieldError](CheckNames(cfg, draft)); ok {
				bad = append(bad, forgedir.Problem{Path: in.Path, Field: wrong.Field, Reason: wrong.Reason})
				continue
			}
		}
		good = append(good, in)
	}
	return good, bad
}
