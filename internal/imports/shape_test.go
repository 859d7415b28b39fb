package imports

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// A rule measures every package, and bounds the figures.
type rule struct {
	name  string
	bound int
	// least makes bound the lowest figure that is allowed, instead of the highest.
	least   bool
	measure func([]folder) []figure
	reason  string
}

// figure is one measurement of a rule.
type figure struct {
	// subject is a folder, or a folder and a type in it: "bus" or "bus.Bus". The
	// root's types are written as "forge.Intent".
	subject string
	value   int
	// places lists where the counted things stand; empty for sizes.
	places []string
}

// exception lets a subject miss a rule's bound as far as until. The table of
// exceptions only shrinks: an entry whose subject meets the bound, or is gone,
// fails the test.
type exception struct {
	rule, subject string
	until         int
	reason        string
}

var rules = []rule{
	{
		name: "fields", bound: 20, measure: fields,
		reason: "a struct is understood as a whole: group what belongs together into structs of its own",
	},
	{
		name: "methods", bound: 40, measure: methods,
		reason: "a newcomer can list the doors of a type: give each concern a type of its own",
	},
	{
		// Comments and blank lines do not count: whoever explains more must not
		// have to divide a package for it.
		name: "lines of code", bound: 2400, measure: size(source.code),
		reason: "a package is read before it is changed: divide it by what its parts are about",
	},
	{
		name: "lines of a command", bound: 700, measure: commandLines,
		reason: "a package of the command line is about one noun: what has no command of its own moves to a package below it",
	},
	{
		name: "files", bound: 25, measure: size(func(source) int { return 1 }),
		reason: "a package's folder is its table of contents: divide it by what its parts are about",
	},
	{
		name: "riddles", bound: 0, measure: riddles,
		reason: `say what it does, with its name and a verb: "pendingOverlaps returns the overlapping tasks that ..."`,
	},
	{
		name: "habits", bound: 0, measure: habits,
		reason: "say it in plain English: something continues, a person fixes it, the program is your own",
	},
	{
		name: "wide comments", bound: 0, measure: wideComments,
		reason: "a comment that stands on lines of its own is read like a page: break its lines at 100 columns, a tab counted as four",
	},
	{
		name: "docs", bound: 0, measure: undocumented,
		reason: "an exported name has a sentence that begins with it, a field of the vocabulary any comment: who sets it, when, in which unit",
	},
	{
		name: "comments", bound: 20, least: true, measure: density,
		reason: "comment lines for each 100 lines of code: contracts and reasons that the code cannot say",
	},
	{
		// Lower than the bound of all together: of tables, fakes and mains, names say
		// most of what there is to say, and comments that fill up a number say nothing.
		name: "sparse", bound: 13, least: true, measure: densities,
		reason: "comment lines for each 100 lines of code of one package: who calls, units, errors, order, the source of a rule",
	},
}

func TestShape(t *testing.T) {
	folders := parse(t, os.DirFS(repository(t)), workspace(t))
	for _, r := range rules {
		for _, problem := range r.check(r.measure(folders), exceptions) {
			t.Error(problem)
		}
	}
	t.Run("lines of code, and comment lines per 100 of them", func(t *testing.T) { // shown by go test -v
		for _, f := range folders {
			t.Logf("%5d %4d %s", size(source.code)([]folder{f})[0].value, density([]folder{f})[0].value, f.path)
		}
	})
}

// check compares the figures of a rule with its bound and its exceptions, and returns
// one message for each violation and for each exception that is not needed.
func (r rule) check(figures []figure, table []exception) []string {
	excepted := map[string]exception{}
	var problems []string
	for _, e := range table {
		if e.rule != r.name {
			continue
		}
		if _, twice := excepted[e.subject]; twice || e.reason == "" {
			problems = append(problems, fmt.Sprintf("exceptions has %s of %s twice or without a reason", r.name, e.subject))
		}
		excepted[e.subject] = e
	}
	for _, f := range figures {
		e, ok := excepted[f.subject]
		switch {
		case r.allows(f.value, r.bound):
			continue
		case !ok:
			problems = append(problems, fmt.Sprintf("%s: %s is %d, the bound is %d: %s%s",
				f.subject, r.name, f.value, r.bound, r.reason, list(f.places)))
		case !r.allows(f.value, e.until):
			problems = append(problems, fmt.Sprintf("%s: %s is %d, and has been %d; exceptions only shrink: %s%s",
				f.subject, r.name, f.value, e.until, r.reason, list(f.places)))
		}
		delete(excepted, f.subject)
	}
	for _, subject := range slices.Sorted(maps.Keys(excepted)) {
		problems = append(problems, fmt.Sprintf("%s meets the bound of %s, or is gone: delete its exception", subject, r.name))
	}
	return problems
}

func (r rule) allows(value, bound int) bool {
	if r.least {
		return value >= bound
	}
	return value <= bound
}

func list(places []string) string {
	const most = 20
	if len(places) > most {
		places = append(slices.Clone(places[:most]), fmt.Sprintf("and %d more", len(places)-most))
	}
	var b strings.Builder
	for _, p := range places {
		b.WriteString("\n\t" + p)
	}
	return b.String()
}
