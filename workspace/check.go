package workspace

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/config"
	"github.com/pfl-forge/pfl-forge/internal/slug"
	"github.com/pfl-forge/pfl-forge/internal/strictyaml"
)

var typeName = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,63}$`)

// frontCheck finds values that are well-formed YAML, but make no sense.
type frontCheck struct {
	in       *Input
	front    *frontMatter
	pos      *strictyaml.Positions
	problems []Problem
}

func checkFront(in *Input, f *frontMatter, i *forge.Intent, pos *strictyaml.Positions) []Problem {
	c := frontCheck{in: in, front: f, pos: pos}
	c.words()
	c.dependencies(i.ID)
	c.lists()
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

func (c *frontCheck) words() {
	for _, f := range []struct {
		field, value string
		check        func(string) string
		hint         string
	}{
		{"title", c.front.Title, checkTitle, ""},
		{"type", c.front.Type, checkType, "such as feature, fix, refactor, test or audit"},
		{"risk", c.front.Risk, checkRisk, "omit it to let the analysis choose"},
		{"agent", c.front.Agent, checkLine, ""},
		{"recipe", c.front.Recipe, checkLine, ""},
	} {
		if c.pos.Has(f.field) {
			c.refuse(f.field, f.check(f.value), f.hint)
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

func (c *frontCheck) lists() {
	for n, s := range c.front.Criteria {
		c.refuse(fmt.Sprintf("criteria[%d]", n), checkBody(s), "")
	}
	for n, s := range c.front.Labels {
		c.refuse(fmt.Sprintf("labels[%d]", n), checkLine(s), "")
	}
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

func checkTitle(s string) string {
	if len(s) > forge.MaxTitle {
		return fmt.Sprintf("has %d bytes; at most %d are allowed", len(s), forge.MaxTitle)
	}
	return checkLine(s)
}

// checkLine wants one line of text.
func checkLine(s string) string {
	if strings.TrimSpace(s) == "" {
		return "is empty"
	}
	for _, r := range s {
		if unicode.IsControl(r) {
			return fmt.Sprintf("holds the control character %U; it must be one line of text", r)
		}
	}
	return ""
}

func checkType(s string) string {
	if typeName.MatchString(s) {
		return ""
	}
	return fmt.Sprintf("is %q; a type must be one lower-case word", s)
}

func checkRisk(s string) string {
	if forge.Risk(s).Rank() == 0 {
		return fmt.Sprintf("is %q; it can be low, med or high", s)
	}
	return ""
}

func checkBody(s string) string {
	switch {
	case strings.TrimSpace(s) == "":
		return "is empty"
	case strings.ContainsRune(s, 0):
		return "holds a NUL character"
	case len(s) > forge.MaxBody:
		return fmt.Sprintf("has %d bytes; at most %d are allowed", len(s), forge.MaxBody)
	}
	return ""
}

// reasonOf returns why a text is no id, without naming it again.
func reasonOf(err error) string {
	if bad, ok := errors.AsType[*forge.IDError](err); ok {
		return fmt.Sprintf("%q %s", bad.Short(20), bad.Reason)
	}
	return err.Error()
}
