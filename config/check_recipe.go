package config

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/pattern"
)

// The shapes of names: of recipes, their tasks and back ends, and of parameters.
var (
	nameShape  = pattern.New(`^[a-z0-9][a-z0-9_-]{0,63}$`)
	paramShape = pattern.New(`^[A-Z][A-Z0-9_]{0,63}$`)
)

// CheckParamName returns an error for a name that a recipe's parameter must not have: one
// that is no environment variable (upper case letters, digits and _, at most 64), that is
// pfl-forge's own (FORGE_...), or that would change how the command itself runs (PATH,
// LD_PRELOAD, GIT_DIR).
func CheckParamName(name string) error {
	switch {
	case !paramShape.MatchString(name):
		return fmt.Errorf("%q must be upper case letters, digits and _, starting with a letter, at most 64", name)
	case strings.HasPrefix(name, "FORGE_"):
		return fmt.Errorf("%q starts with FORGE_, which is kept for pfl-forge's own variables", name)
	case reserved(name):
		return fmt.Errorf("%q changes how commands run; choose another name", name)
	}
	return nil
}

// reserved reports whether a shell, the dynamic linker, git or a common
// interpreter takes orders from this variable.
func reserved(name string) bool {
	switch name {
	case "PATH", "HOME", "SHELL", "IFS", "ENV", "CDPATH", "PWD", "OLDPWD", "TMPDIR", "TERM", "USER", "LOGNAME", "LANG",
		"EDITOR", "VISUAL", "PAGER", "BROWSER", "HOSTALIASES", "PS1", "PS2", "PS4", "SHELLOPTS", "BASHOPTS", "PROMPT_COMMAND",
		"GLOBIGNORE", "CLASSPATH", "IS_SANDBOX", "CC", "CXX", "LD", "AR", "MAKEFLAGS", "GNUMAKEFLAGS", "MFLAGS", "MAKEFILES",
		"GOFLAGS", "GOROOT", "GOPATH", "GOENV", "GOPROXY", "GOTOOLCHAIN", "GOWORK", "GODEBUG", "GOBIN", "GOSUMDB", "RUSTFLAGS", "RUSTC":
		return true
	}
	for _, p := range []string{
		"LD_", "DYLD_", "GIT_", "SSH_", "BASH_", "LC_", "XDG_", "GCONV_", "MALLOC_", "GLIBC_", "CGO_", "PYTHON", "PERL", "RUBY",
		"NODE_", "NPM_", "JAVA_", "JDK_", "CLAUDE_", "ANTHROPIC_", "NATS_", "CARGO_",
	} {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}

// recipe checks one recipe.
func (c *checker) recipe(field, name string, r Recipe) {
	if !nameShape.MatchString(name) {
		c.fail(field, "recipe name %q must be a-z, 0-9, - and _, starting with a letter or digit, at most 64", name)
	}
	c.text(field+".title", r.Title)
	if r.Risk != "" && r.Risk.Rank() == 0 {
		c.oneOf(field+".risk", string(r.Risk), []string{string(forge.RiskLow), string(forge.RiskMed), string(forge.RiskHigh)})
	}
	if r.Timeout != 0 {
		c.timeout(field+".timeout", r.Timeout)
	}
	c.optional(field, "run", r.Run)
	c.optional(field, "check", r.Check)
	c.optional(field, "each", r.Each)
	switch {
	case r.Run == "" && len(r.Tasks) == 0:
		c.fail(field, "needs either run or tasks")
	case r.Run != "" && len(r.Tasks) > 0:
		c.fail(field+".tasks", "cannot stand beside run; keep one of the two")
	case r.Each != "" && len(r.Tasks) > 0:
		c.fail(field+".each", "goes with run, not with tasks")
	}
	c.params(field+".params", r.Params)
	c.tasks(field+".tasks", r.Tasks)
}

// params checks the parameters of a recipe.
func (c *checker) params(field string, params []Param) {
	seen := map[string]bool{}
	for i, p := range params {
		at := fmt.Sprintf("%s[%d]", field, i)
		if err := CheckParamName(p.Name); err != nil {
			c.fail(at+".name", "%v", err)
		}
		if seen[p.Name] {
			c.fail(at+".name", "%q is given twice", p.Name)
		}
		seen[p.Name] = true
		c.noNUL(at+".question", p.Question)
		c.noNUL(at+".context", p.Context)
		if p.Default != nil {
			c.noNUL(at+".default", *p.Default)
		}
		for k, s := range p.Suggested {
			c.noNUL(fmt.Sprintf("%s.suggested[%d]", at, k), s)
		}
	}
}

// tasks checks the tasks of a recipe.
func (c *checker) tasks(field string, tasks []RecipeTask) {
	var names []string
	for i, t := range tasks {
		at := fmt.Sprintf("%s[%d]", field, i)
		switch {
		case t.Name == "":
			c.fail(at, "needs a name")
		case !nameShape.MatchString(t.Name):
			c.fail(at+".name", "%q must be a-z, 0-9, - and _, starting with a letter or digit, at most 64", t.Name)
		case slices.Contains(names, t.Name):
			c.fail(at+".name", "%q is given twice", t.Name)
		}
		names = append(names, t.Name)
		if t.Run == "" && !c.pos.Has(at+".run") {
			c.fail(at, "needs run")
		}
		c.optional(at, "run", t.Run)
		c.optional(at, "check", t.Check)
		c.text(at+".title", t.Title)
		for k, f := range t.Files {
			c.glob(fmt.Sprintf("%s.files[%d]", at, k), f)
		}
	}
	c.dependencies(field, tasks, names)
}

// dependencies checks that the tasks of a recipe depend on tasks of the same
// recipe, and not on each other in a circle. names has the name of each task at
// its index.
func (c *checker) dependencies(field string, tasks []RecipeTask, names []string) {
	for i, t := range tasks {
		for k, dep := range t.DependsOn {
			at := fmt.Sprintf("%s[%d].depends_on[%d]", field, i, k)
			switch {
			case dep == t.Name:
				c.fail(at, "%q depends on itself", dep)
			case !slices.Contains(names, dep):
				c.fail(at, "no task of this recipe is called %q%s", dep, suggestion("; ", dep, names))
			case slices.Contains(t.DependsOn[:k], dep):
				c.fail(at, "%q is given twice", dep)
			}
		}
	}
	if loop := cycle(tasks); len(loop) > 1 {
		c.fail(field, "depend on each other in a circle: %s", strings.Join(loop, " -> "))
	}
}

// cycle returns the names of tasks that wait for each other, the first one
// again at the end, or nil.
func cycle(tasks []RecipeTask) []string {
	deps := map[string][]string{}
	for _, t := range tasks {
		deps[t.Name] = t.DependsOn
	}
	done := map[string]bool{}
	var path []string
	var visit func(string) []string
	visit = func(name string) []string {
		if i := slices.Index(path, name); i >= 0 {
			return append(slices.Clone(path[i:]), name)
		}
		if done[name] {
			return nil
		}
		path = append(path, name)
		for _, d := range deps[name] {
			if d != name {
				if loop := visit(d); loop != nil {
					return loop
				}
			}
		}
		path = path[:len(path)-1]
		done[name] = true
		return nil
	}
	for _, t := range tasks {
		if loop := visit(t.Name); loop != nil {
			return loop
		}
	}
	return nil
}

// optional checks a shell command that may be left out. It refuses a key without one.
func (c *checker) optional(field, key, s string) {
	at := field + "." + key
	if c.pos.Has(at) && strings.TrimSpace(s) == "" {
		c.fail(at, "is an empty command; write : for a command that does nothing")
	}
	c.noNUL(at, s)
}

// text refuses a text that has more than 200 characters or more than one line.
func (c *checker) text(field, s string) {
	if utf8.RuneCountInString(s) > 200 || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		c.fail(field, "must be one line of at most 200 characters")
	}
}
