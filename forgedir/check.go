package forgedir

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/config"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/internal/slug"
	"github.com/pfl-forge/pfl-forge/internal/strictyaml"
)

// frontCheck finds values that are well-formed YAML, but make no sense.
type frontCheck struct {
	in       *Input
	front    *document.Draft
	intent   *forge.Intent // as the front matter has it
	pos      *strictyaml.Positions
	problems []Problem
}

func checkFront(in *Input, f *document.Draft, i *forge.Intent, pos *strictyaml.Positions) []Problem {
	said := f.Intent()
	c := frontCheck{in: in, front: f, intent: &said, pos: pos}
	c.texts()
	c.dependencies(i.ID)
	c.parameters()
	c.goal()
	if len(c.problems) == 0 {
		if e := i.Validate(); e != nil {
			c.refuse(fileField(e.Field), e.Reason, "")
		}
	}
	slices.SortStableFunc(c.problems, byLine)
	return c.problems
}

// refuse notes a problem, unless there is no reason for one.
func (c *frontCheck) refuse(field, reason, hint string) {
	if reason != "" {
		c.problems = append(c.problems, c.in.problem(field, reason, hint))
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

func (c *frontCheck) dependencies(self forge.IntentID) {
	for n, d := range c.front.DependsOn {
		field := fmt.Sprintf("depends_on[%d]", n)
		if _, err := forge.ParseIntentID(d); err != nil {
			hint := "give the ids of intents"
			if slug.Foreign(d) {
				hint += "; that of " + d + ".md is " + slug.Named(unnamed, d)
			}
			c.refuse(field, reasonOf(err), hint)
		} else if d == string(self) {
			c.refuse(field, "names the intent itself", "remove it")
		} else if slices.Index(c.front.DependsOn, d) < n {
			c.refuse(field, fmt.Sprintf("names %s a second time", d), "remove it")
		}
	}
}

func (c *frontCheck) parameters() {
	for name, v := range c.front.With {
		if err := config.CheckParamName(name); err != nil {
			c.refuse("with."+name, err.Error(), "")
		} else if strings.ContainsRune(v, 0) {
			c.refuse("with."+name, "holds a NUL character", "")
		}
	}
}

func byLine(a, b Problem) int {
	if a.Line != b.Line {
		return a.Line - b.Line
	}
	return strings.Compare(a.Field, b.Field)
}

// reasonOf returns why a text is no id, without naming it again.
func reasonOf(err error) string {
	if bad, ok := errors.AsType[*forge.IDError](err); ok {
		return fmt.Sprintf("%q %s", bad.Short(20), bad.Reason)
	}
	return err.Error()
}
