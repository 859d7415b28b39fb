package workspace

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/config"
	"github.com/pfl-forge/pfl-forge/internal/strictyaml"
)

var typeName = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,63}$`)

// checkFront returns what is wrong with values that are well-formed YAML.
func checkFront(in *Input, f *frontMatter, i *forge.Intent, pos *strictyaml.Positions) []Problem {
	var problems []Problem
	refuse := func(field, reason, hint string) {
		problems = append(problems, in.problem(field, reason, hint))
	}
	if pos.Has("title") {
		if reason := checkTitle(f.Title); reason != "" {
			refuse("title", reason, "")
		}
	}
	if pos.Has("type") {
		if reason := checkType(f.Type); reason != "" {
			refuse("type", reason, "such as feature, fix, refactor, test or audit")
		}
	}
	if pos.Has("risk") && i.Risk.Rank() == 0 {
		refuse("risk", fmt.Sprintf("is %q; it can be low, med or high", f.Risk), "leave it out to have it judged")
	}
	for n, d := range f.DependsOn {
		field := fmt.Sprintf("depends_on[%d]", n)
		if _, err := forge.ParseIntentID(d); err != nil {
			refuse(field, reasonOf(err), "name intents by their ids")
		} else if d == string(i.ID) {
			refuse(field, "names the intent itself", "remove it")
		} else if slices.Index(f.DependsOn, d) < n {
			refuse(field, fmt.Sprintf("names %s a second time", d), "remove it")
		}
	}
	for field, list := range map[string][]string{"criteria": f.Criteria, "labels": f.Labels} {
		for n, s := range list {
			if reason := checkLine(s); reason != "" && field == "labels" || strings.TrimSpace(s) == "" {
				refuse(fmt.Sprintf("%s[%d]", field, n), cmp.Or(reason, "is empty"), "")
			}
		}
	}
	for field, s := range map[string]string{"agent": f.Agent, "recipe": f.Recipe} {
		if pos.Has(field) {
			if reason := checkLine(s); reason != "" {
				refuse(field, reason, "")
			}
		}
	}
	for name, v := range f.With {
		if err := config.CheckParamName(name); err != nil {
			refuse("with."+name, err.Error(), "")
		} else if strings.ContainsRune(v, 0) {
			refuse("with."+name, "holds a NUL character", "")
		}
	}
	if len(problems) == 0 {
		if e := i.Validate(); e != nil {
			refuse(e.Field, e.Reason, "")
		}
	}
	slices.SortStableFunc(problems, byLine)
	return problems
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
	return fmt.Sprintf("is %q; a type is one lower-case word", s)
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
	var bad *forge.IDError
	if errors.As(err, &bad) {
		v := bad.Value
		if len(v) > 20 {
			v = v[:20] + "..."
		}
		return fmt.Sprintf("%q %s", v, bad.Reason)
	}
	return err.Error()
}
