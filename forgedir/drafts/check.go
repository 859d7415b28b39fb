package drafts

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/config"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/forgedir/person"
	"github.com/pfl-forge/pfl-forge/internal/slug"
	"github.com/pfl-forge/pfl-forge/internal/strictyaml"
)

// frontCheck finds values that are well-formed YAML, but make no sense. Its rules need
// the front matter: a value that is given and empty is a mistake, while a field that is
// not given is none, which an intent does not tell apart; and a problem has the place
// of an entry, and a hint. The intent as a whole is checked by forge.Intent.Validate.
type frontCheck struct {
	in       *person.Input
	front    *document.Draft
	intent   *forge.Intent // only the values of the front matter
	pos      *strictyaml.Positions
	problems []person.Problem
}

// check returns the problems of a front matter, and if it has none, those of the
// intent that the draft asks for, in the order of their lines.
func check(in *person.Input, f *document.Draft, i *forge.Intent, pos *strictyaml.Positions) []person.Problem {
	said := f.Intent()
	c := frontCheck{in: in, front: f, intent: &said, pos: pos}
	c.texts()
	c.dependencies(i.ID)
	c.parameters()
	c.goal()
	c.criteria()
	if len(c.problems) == 0 {
		if e := i.Validate(); e != nil {
			c.refuse(person.FieldInFiles(e.Field), e.Reason, "")
		}
	}
	slices.SortStableFunc(c.problems, person.ByLine)
	return c.problems
}

// refuse notes a problem, unless there is no reason for one.
func (c *frontCheck) refuse(field, reason, hint string) {
	if reason != "" {
		c.problems = append(c.problems, c.in.Problem(field, reason, hint))
	}
}

// texts checks the texts that were given, and the entries of lists. The table of fields
// in package document says how.
func (c *frontCheck) texts() {
	for _, f := range document.FieldsBy(document.Persons) {
		if f.Check == nil || !c.pos.Has(f.Name) {
			continue
		}
		texts, list := f.Entries(c.intent)
		for n, s := range texts {
			name := f.Name
			if list {
				name = fmt.Sprintf("%s[%d]", f.Name, n)
			}
			c.refuse(name, f.Check(s), f.Hint)
		}
	}
}

// dependencies checks the ids of depends_on. Whether there are such intents is
// decided later, see CheckDependencies.
func (c *frontCheck) dependencies(self forge.IntentID) {
	for n, d := range c.front.DependsOn {
		field := fmt.Sprintf("depends_on[%d]", n)
		if _, err := forge.ParseIntentID(d); err != nil {
			hint := "give the ids of intents"
			if slug.Foreign(d) {
				hint += "; that of " + d + ".md is " + slug.Named(unnamed, d)
			}
			c.refuse(field, person.NoID(err), hint)
		} else if d == string(self) {
			c.refuse(field, "names the intent itself", "remove it")
		} else if slices.Index(c.front.DependsOn, d) < n {
			c.refuse(field, fmt.Sprintf("names %s a second time", d), "remove it")
		}
	}
}

// parameters checks the values for the recipe. Their names become those of environment
// variables. Whether the recipe has such parameters is not decided here.
func (c *frontCheck) parameters() {
	for name, v := range c.front.With {
		if err := config.CheckParamName(name); err != nil {
			c.refuse("with."+name, err.Error(), "")
		} else if strings.ContainsRune(v, 0) {
			c.refuse("with."+name, "holds a NUL character", "")
		}
	}
}

// criteria refuses criteria that say nothing, and commands: what a draft asks for may
// have been copied from anywhere, and runs nothing that pfl-forge.yaml does not name.
func (c *frontCheck) criteria() {
	if e := document.CheckCriteria(c.front.Criteria); e != nil {
		c.refuse(e.Field, e.Reason, "")
	}
	for i, criterion := range c.front.Criteria {
		if criterion.Command != "" {
			c.refuse(fmt.Sprintf("criteria[%d].command", i), "is for task.yaml only: pfl-forge goal run", "name a check of pfl-forge.yaml: {check: tests}")
		}
	}
}

// mostOf has the bounds of a goal's numbers.
var mostOf = map[string]int{
	"goal.max_iterations":       forge.MaxIterations,
	"goal.history_context_size": forge.MaxHistoryContext,
}

// goal finds settings of a goal that are given and say nothing. Bounds and paths are
// checked with the intent.
func (c *frontCheck) goal() {
	for field, value := range c.front.Goal.Values() {
		if !c.pos.Has(field) {
			continue
		}
		switch v := value.(type) {
		case int:
			if v == 0 {
				c.refuse(field, fmt.Sprintf("is 0; it can be 1 to %d", mostOf[field]), "")
			}
		case string:
			if strings.HasSuffix(field, "_prompt") {
				c.refuse(field, document.CheckText(v), "")
			} else {
				c.refuse(field, document.CheckLine(v), "")
			}
		}
	}
}
