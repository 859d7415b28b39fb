package config

import (
	"maps"
	"slices"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/strictyaml"
)

// Recipe is a named, deterministic change that the repository defines: either
// one command (Run), once or per line that Each prints, or named Tasks.
type Recipe struct {
	Title      string        `yaml:"title"`       // of the tasks; empty means the intent's title
	Risk       forge.Risk    `yaml:"risk"`        // the judged risk; empty means low
	Run        string        `yaml:"run"`         // sh -c in the checkout; what it changed is committed
	Check      string        `yaml:"check"`       // the review: exit 0 approves, otherwise its output is the feedback
	Params     []Param       `yaml:"params"`      // values that an intent gives, as environment variables
	Each       string        `yaml:"each"`        // prints one line per task, which Run finds in FORGE_ITEM
	Tasks      []RecipeTask  `yaml:"tasks"`       // instead of Run
	AllowEmpty bool          `yaml:"allow_empty"` // a run that changes nothing counts as done
	Timeout    time.Duration `yaml:"timeout"`     // of each command; 0 means that of the step
}

// Param is a value that an intent gives to a recipe. One without Default that
// the intent does not give becomes a clarification.
type Param struct {
	Name      string   `yaml:"name"`      // of the environment variable
	Question  string   `yaml:"question"`  // to the person; empty means "Which value for <name>?"
	Context   string   `yaml:"context"`   // what the person should know
	Suggested []string `yaml:"suggested"` // answers to choose from; others are allowed
	Default   *string  `yaml:"default"`   // nil means: ask
}

// RecipeTask is one task of a recipe.
type RecipeTask struct {
	Name      string   `yaml:"name"`       // unique in the recipe
	Title     string   `yaml:"title"`      // empty means the name
	Run       string   `yaml:"run"`        // sh -c in the checkout
	Check     string   `yaml:"check"`      // empty means the recipe's check
	DependsOn []string `yaml:"depends_on"` // names of tasks that must be integrated before
	Files     []string `yaml:"files"`      // what it is expected to change
}

// Task returns the recipe's task with this name.
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

// ClosestRecipe returns the recipe that an unknown name was probably meant to
// be, or "".
func (p *Project) ClosestRecipe(name string) string {
	return strictyaml.Closest(name, p.RecipeNames())
}
