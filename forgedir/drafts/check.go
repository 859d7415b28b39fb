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

// frontCheck finds values that are well-formed YAML, but make no sense.
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

// texts checks the texts that were given, and the entries of lists.
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

// parameters checks the values for the recipe.
func (c *frontCheck) parameters() {
	for name, v := range c.front.With {
		if err := config.CheckParamName(name); err != nil {
			c.refuse("with."+name, err.Error(), "")
		} else if strings.ContainsRune(v, 0) {
			c.refuse("with."+name, "holds a NUL character", "")
		}
	}
}

// goal finds settings of a goal that are given and empty. Bounds and paths are checked
// with the intent.
func (c *frontCheck) goal() {
	g := c.front.Goal
	if g == nil {
		return
	}
	for _, f := range []struct {
		field       string
		value, most int
	}{
		{"goal.max_iterations", g.MaxIterations, forge.MaxIterations},
		{"goal.history_context_size", g.HistoryContext, forge.MaxHistoryContext},
	} {
		if c.pos.Has(f.field) && f.value == 0 {
			c.refuse(f.field, fmt.Sprintf("is 0; it can be 1 to %d", f.most), "")
		}
	}
	for _, f := range []struct{ field, value string }{
		{"goal.model", g.Model},
		{"goal.history", g.History},
		{"goal.knowledge", g.Knowledge},
		{"goal.raw_log_dir", g.RawLogDir},
	} {
		if c.pos.Has(f.field) {
			c.refuse(f.field, document.CheckLine(f.value), "")
		}
	}
	for _, f := range []struct{ field, value string }{
		{"goal.append_system_prompt", g.SystemPrompt}, {"goal.judgment_prompt", g.JudgePrompt},
	} {
		if c.pos.Has(f.field) {
			c.refuse(f.field, document.CheckText(f.value), "")
		}
	}
}
