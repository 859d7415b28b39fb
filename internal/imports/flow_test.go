package imports

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// flowPackage is a composition of the rules, and projects below it the other
// one; the small machines are the other packages below it.
const flowPackage = module + "/services/runner/flow"

// shared lists packages below flowPackage that every small machine may import:
// they decide on no event.
var shared = []string{"cause", "outbox", "rule", "session"}

// machine is a row of machines.
type machine struct {
	may    []string
	reason string
}

// machines lists the small machines that import others, besides those that are
// shared, and why. A machine may hold a part of another one's kind in its own
// state, and name its facts; it never gets at the state that the other one has
// in the composition. Whoever needs that has it handed as an argument.
var machines = map[string]machine{
	"adoption":   {[]string{"pull", "task"}, "it finds the task of a commit that was seen at a branch, and changes none"},
	"bound":      {[]string{"approval", "plan", "task"}, "it compares the approvals of a plan with those of the changes, which are kept where each is"},
	"dispatch":   {[]string{"budget", "obstacle", "pause"}, "a command goes out if all three let it"},
	"goal":       {[]string{"retry", "task"}, "a goal is worked on as one task, by a table of its own (ADR 0031)"},
	"mergequeue": {[]string{"pull"}, "a change waits for its pull request, whose state is a part of the request's"},
	"plan":       {[]string{"approval", "retry", "task"}, "the gate collects approvals, steps are tried again, and a plan is made again as often as a change"},
	"task":       {[]string{"approval", "pull", "retry"}, "a task has the approval of its change, the words of its pull request, and attempts that failed"},
}

// TestMachinesOfTheFlow checks that the small machines of the rules import no others than machines
// says, that each row is needed, and that no two import each other, also not by way of others.
func TestMachinesOfTheFlow(t *testing.T) {
	imported := map[string][]string{}
	for _, f := range workspace(t) {
		from, is := strings.CutPrefix(f.pkg, flowPackage+"/")
		if !is || f.test || strings.Contains(from, "/") || from == "projects" {
			continue
		}
		if imported[from] == nil {
			imported[from] = []string{}
		}
		for _, imp := range f.imports {
			if to, is := strings.CutPrefix(imp, flowPackage+"/"); is && !slices.Contains(shared, to) && !slices.Contains(imported[from], to) {
				imported[from] = append(imported[from], to)
			}
		}
	}
	if len(imported) < 20 {
		t.Fatalf("%d small machines were found: %v", len(imported), slices.Sorted(maps.Keys(imported)))
	}
	for _, from := range slices.Sorted(maps.Keys(imported)) {
		row := machines[from]
		for _, to := range imported[from] {
			if !slices.Contains(row.may, to) {
				t.Errorf("%s imports %s: have the composition hand over what it needs, or add it to machines and say why", from, to)
			}
			if reaches(to, from, imported) {
				t.Errorf("%s and %s import each other", from, to)
			}
		}
		if slices.Contains(shared, from) && slices.ContainsFunc(imported[from], func(to string) bool { return !slices.Contains(shared, to) }) {
			t.Errorf("%s is shared by all, and imports %v", from, imported[from])
		}
	}
	for from, row := range machines {
		for _, to := range row.may {
			if !slices.Contains(imported[from], to) {
				t.Errorf("%s does not import %s any more: take it off machines", from, to)
			}
		}
		if row.reason == "" {
			t.Errorf("machines has %s without a reason", from)
		}
	}
}

// reaches reports whether a package imports another one, by however many in between.
func reaches(from, to string, imported map[string][]string) bool {
	return from == to || slices.ContainsFunc(imported[from], func(next string) bool { return reaches(next, to, imported) })
}
