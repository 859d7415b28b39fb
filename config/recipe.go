package config

import (
	"maps"
	"slices"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/strictyaml"
)

// Recipe is a deterministic change that the repository defines: either one command (Run),
// which runs once or for each line that Each prints, or a list of Tasks. All commands are
// run by sh -c in a checkout.
type Recipe struct {
	// Title is that of the tasks. Empty means the intent's title.
	Title string `yaml:"title"`
	// Risk is the judged risk of the change. Empty means low.
	Risk forge.Risk `yaml:"risk"`
	// Run makes the change. What it changed in the checkout is committed.
	Run string `yaml:"run"`
	// Check reviews the change: exit code 0 approves, any other rejects with the output as
	// the reason. Without one, every change is approved.
	Check string `yaml:"check"`
	// Params are the values that an intent gives. Commands find them as environment
	// variables.
	Params []Param `yaml:"params"`
	// Each prints one line for each task. Run finds its line in FORGE_ITEM.
	Each string `yaml:"each"`
	// Tasks stand in place of Run.
	Tasks []RecipeTask `yaml:"tasks"`
	// AllowEmpty lets a run that changes nothing count as done also where there is no check,
	// or it does not pass. Otherwise that is an error.
	AllowEmpty bool `yaml:"allow_empty"`
	// Timeout bounds each command. 0 means that of the step (see [Timeouts]).
	Timeout time.Duration `yaml:"timeout"`
}

// Param is a value that an intent gives to a recipe. If it gives none and there is no
// Default, a person is asked.
type Param struct {
	// Name is the environment variable's, see [CheckParamName].
	Name string `yaml:"name"`
	// Question is put to the person. Empty means "Which value for <name>?".
	Question string `yaml:"question"`
	// Context is shown with the question.
	Context string `yaml:"context"`
	// Suggested lists answers to choose from; others are allowed.
	Suggested []string `yaml:"suggested"`
	// Default is the value where the intent gives none. nil means that a person is asked.
	Default *string `yaml:"default"`
}

// RecipeTask is one task of a recipe. Tasks run at the same time unless one depends on
// another.
type RecipeTask struct {
	// Name is unique in the recipe.
	Name string `yaml:"name"`
	// Title is the subject of the commit. Empty means the name.
	Title string `yaml:"title"`
	// Run makes the change.
	Run string `yaml:"run"`
	// Check reviews it. Empty means the recipe's.
	Check string `yaml:"check"`
	// DependsOn names the tasks that must be merged before this one begins.
	DependsOn []string `yaml:"depends_on"`
	// Files are the paths or patterns that it is expected to change.
	Files []string `yaml:"files"`
}

// Task returns the recipe's task with this name; false if there is none.
func (r *Recipe) Task(name string) (RecipeTask, bool) {
	for _, t := range r.Tasks {
		if t.Name == name {
			return t, true
		}
	}
	return RecipeTask{}, false
}

// RecipeNames returns the names of the project's recipes, sorted.
func (p *Project) RecipeNames() []string {
	return slices.Sorted(maps.Keys(p.Recipes))
}

// ClosestRecipe returns the name of the recipe that an unknown name was probably meant to
// be, or "" if none is close.
func (p *Project) ClosestRecipe(name string) string {
	return strictyaml.Closest(name, p.RecipeNames())
}
