package recipe_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/process"
	"github.com/pfl-forge/pfl-forge/agent/recipe"
	"github.com/pfl-forge/pfl-forge/config"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

const project = `
recipes:
  gofmt:
    run: echo formatted > out
    check: test -s out
  rename:
    title: Rename
    risk: med
    params:
      - {name: FROM, question: 'Which identifier?', context: A Go name., suggested: [foo, bar]}
      - {name: TO}
      - {name: MODE, default: fast}
    each: printf 'one\n\n  two\none\n%s\n' "$MODE"
    run: echo "$FORGE_INTENT $FORGE_TASK $FORGE_ITEM $FORGE_ATTEMPT $FROM $TO $MODE [$(cat "$FORGE_FEEDBACK")]" > out
    check: cat out; echo no good >&2; exit 4
  docs:
    check: test -e checked
    tasks:
      - {name: generate, run: touch generated, files: [docs/]}
      - {name: index, title: The index, run: 'echo gone wrong; exit 3', check: 'true', depends_on: [generate]}
  none: {each: 'true', run: 'true'}
  idle: {run: 'true', check: touch checked}
  wrong: {run: 'true', check: touch checked; exit 1}
  broken: {each: 'echo half; exit 2', run: 'true'}
  nasty: {each: 'printf "ok\na\033[31mb\n"', run: 'true'}
  hidden: {each: 'printf "a\342\200\256b\n"', run: 'true'}
  crowd: {each: 'seq 1001', run: 'true'}
  slow: {run: 'echo begun; sleep 60', timeout: 1s}
`

func call(t *testing.T, role agent.Role, name string, with map[string]string) agent.Call {
	t.Helper()
	p, err := config.Parse([]byte(project))
	if err != nil {
		t.Fatal(err)
	}
	return agent.Call{
		Role: role, Dir: t.TempDir(), ScratchDir: t.TempDir(),
		Recipe: &agent.RecipeCall{Project: p, Name: name, With: with, Intent: "tidy", TaskID: "tidy-001", Attempt: 1},
	}
}

// invocation is one call of a recipe.
func invocation(t *testing.T, c agent.Call) (agent.Outcome, error) {
	t.Helper()
	return recipe.New(process.NewOwner(t.TempDir())).Run(t.Context(), c, nil)
}

func analyze(t *testing.T, name string, with map[string]string) (forge.Analysis, error) {
	t.Helper()
	out, err := invocation(t, call(t, agent.RoleAnalyze, name, with))
	if err != nil {
		return forge.Analysis{}, err
	}
	a, _, err := agent.ParseAnalysis(out.Answer)
	return a, err
}

func TestAnalyzeMakesOneTask(t *testing.T) {
	got, err := analyze(t, "gofmt", nil)
	want := forge.Analysis{Risk: forge.RiskLow, Tasks: []forge.TaskPlan{{
		Name: "gofmt", Title: "gofmt", Plan: "recipe gofmt\nrun: echo formatted > out\ncheck: test -s out\n",
	}}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
}

func TestAnalyzeAsksForMissingParameters(t *testing.T) {
	got, err := analyze(t, "rename", map[string]string{})
	want := forge.Analysis{Risk: forge.RiskMed, Clarifications: []forge.Clarification{
		{Question: "Which identifier?", Context: "A Go name.", SuggestedAnswers: []string{"foo", "bar"}, Param: "FROM"},
		{Question: "Which value for TO?", Param: "TO"},
	}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
}

// TestPlanHasAllOfAValue: a command gets all of a value, so whoever approves the plan is shown all of
// it: also what a terminal obeys in place of showing it.
func TestPlanHasAllOfAValue(t *testing.T) {
	got, err := analyze(t, "rename", map[string]string{"FROM": "a\x1b]0;b; rm -rf /\x07c", "TO": "d\u202ee"})
	if err != nil || len(got.Tasks) == 0 {
		t.Fatalf("%+v, %v", got, err)
	}
	for _, want := range []string{"\nFROM: a<U+001B>]0;b; rm -rf /<U+0007>c\n", "\nTO: d<U+202E>e\n"} {
		if plan := got.Tasks[0].Plan; !strings.Contains(plan, want) {
			t.Errorf("the plan is %q, without %q", plan, want)
		}
	}
}

func TestAnalyzeMakesATaskPerLine(t *testing.T) {
	got, err := analyze(t, "rename", map[string]string{"FROM": "a", "TO": "b", "MODE": "slow"})
	if err != nil {
		t.Fatal(err)
	}
	var items, titles []string
	for _, p := range got.Tasks {
		items, titles = append(items, p.Item), append(titles, p.Title)
	}
	if diff := cmp.Diff([]string{"one", "two", "slow"}, items); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"Rename: one", "Rename: two", "Rename: slow"}, titles); diff != "" {
		t.Error(diff)
	}
}

func TestAnalyzeOfNamedTasks(t *testing.T) {
	got, err := analyze(t, "docs", nil)
	want := []forge.TaskPlan{
		{
			Name: "generate", Title: "docs: generate", RelevantFiles: []string{"docs/"},
			Plan: "recipe docs\nrun: touch generated\ncheck: test -e checked\n",
		},
		{
			Name: "index", Title: "The index", DependsOn: []string{"generate"},
			Plan: "recipe docs\nrun: echo gone wrong; exit 3\ncheck: true\n",
		},
	}
	if diff := cmp.Diff(want, got.Tasks); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
}

func TestAnalyzeWithoutLinesHasNothingToDo(t *testing.T) {
	got, err := analyze(t, "none", nil)
	if err != nil || len(got.Tasks) != 0 || got.NothingToDo == "" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestAnalyzeRefuses(t *testing.T) {
	for _, tt := range []struct {
		name   string
		with   map[string]string
		reason string
	}{
		{"gofmtt", nil, `has no recipe "gofmtt"; did you mean "gofmt"? known are broken, crowd, docs`},
		{"", nil, "the intent names no recipe; known are broken"},
		{"gofmt", map[string]string{"PATH": "/tmp"}, `recipe "gofmt" has no parameter "PATH"; it has none`},
		{"rename", map[string]string{"FORM": "x"}, `has no parameter "FORM"; it has FROM, TO, MODE`},
		{"rename", map[string]string{"FROM": "a\x00b"}, "the value of FROM contains a NUL character"},
		{"rename", map[string]string{"FROM": strings.Repeat("x", 40_000)}, "the value of FROM is 40000 bytes long"},
		{"broken", nil, "\"echo half; exit 2\" exited with status 2:\nhalf"},
		{"nasty", nil, "line 2 holds control or invisible characters"},
		{"hidden", nil, "line 1 holds control or invisible characters: \"a<U+202E>b\""},
		{"crowd", nil, "printed more than 1000 lines"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := analyze(t, tt.name, tt.with)
			mustFail(t, err, forge.FailConfig, tt.reason)
		})
	}
}

func mustFail(t *testing.T, err error, reason forge.FailureReason, message string) {
	t.Helper()
	var f *agent.Failure
	if !errors.As(err, &f) || f.Reason != reason || !strings.Contains(f.Message, message) {
		t.Errorf("got %v\nwant %s: ...%s...", err, reason, message)
	}
}

func TestImplementRunsInTheCheckout(t *testing.T) {
	c := call(t, agent.RoleImplement, "rename", map[string]string{"FROM": "a b", "TO": "$(touch injected)"})
	c.Recipe.Item, c.Recipe.Attempt, c.Recipe.Feedback = "x y", 2, "first try was wrong"
	c.Env = []string{"FORGE_ITEM=overridden", "PATH=" + os.Getenv("PATH")}
	out, err := invocation(t, c)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(c.Dir, "out"))
	want := "tidy tidy-001 x y 2 a b $(touch injected) fast [first try was wrong]\n"
	if string(got) != want || err != nil {
		t.Errorf("command saw %q, want %q; %v", got, want, err)
	}
	if summary, _, err := agent.ParseImplementation(out.Answer); err != nil || !strings.HasPrefix(summary, "Ran recipe rename: echo") {
		t.Errorf("summary %q, %v", summary, err)
	}
	if files, _ := os.ReadDir(c.Dir); len(files) != 1 {
		t.Errorf("left %v beside its output", files)
	}
}

func TestImplementFailsWithTheOutput(t *testing.T) {
	c := call(t, agent.RoleImplement, "docs", nil)
	c.Recipe.Task = "index"
	_, err := invocation(t, c)
	mustFail(t, err, forge.FailCrashed, "exited with status 3:\ngone wrong")

	c.Recipe.Task = "removed"
	_, err = invocation(t, c)
	mustFail(t, err, forge.FailConfig, `has no task "removed" any more`)

	_, err = invocation(t, call(t, agent.RoleImplement, "slow", nil))
	mustFail(t, err, forge.FailTimeout, "took longer than allowed (1s)\nbegun")
}

func TestReview(t *testing.T) {
	review := func(name, task string, files ...string) (forge.Review, error) {
		c := call(t, agent.RoleReview, name, map[string]string{})
		c.Recipe.Task = task
		for _, f := range files {
			if err := os.WriteFile(filepath.Join(c.Dir, f), []byte("text\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		out, err := invocation(t, c)
		if err != nil {
			return forge.Review{}, err
		}
		r, _, err := agent.ParseReview(out.Answer)
		return r, err
	}
	approved := forge.Review{Verdict: forge.VerdictApproved, Issues: []string{}}
	for _, tt := range []struct {
		name, task string
		files      []string
		want       forge.Review
	}{
		{"gofmt", "", []string{"out"}, approved},
		{"gofmt", "", nil, rejected(`"test -s out" exited with status 1 and printed nothing`)},
		{"rename", "", []string{"out"}, rejected("\"cat out; echo no good >&2; exit 4\" exited with status 4:\ntext\nno good")},
		{"none", "", nil, approved},
		{"docs", "index", nil, approved},
		{"docs", "generate", nil, rejected(`"test -e checked" exited with status 1 and printed nothing`)},
	} {
		got, err := review(tt.name, tt.task, tt.files...)
		if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
			t.Errorf("%s %s: %v\n%s", tt.name, tt.task, err, diff)
		}
	}
}

func rejected(issue string) forge.Review {
	return forge.Review{Verdict: forge.VerdictRejected, Issues: []string{issue}}
}

func TestOutputIsReportedSanitized(t *testing.T) {
	c := call(t, agent.RoleImplement, "gofmt", nil)
	c.Recipe.Project.Recipes["gofmt"] = config.Recipe{Run: `printf '\033]0;evil\007plain\n\033[31mred\n'`}
	var lines []string
	_, err := recipe.New(process.Owner{}).Run(t.Context(), c, func(e agent.Event) {
		lines = append(lines, fmt.Sprintf("%s %s", e.Kind, e.Text))
	})
	if diff := cmp.Diff([]string{"output plain", "output red"}, lines); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
}

func TestCancelled(t *testing.T) {
	ctx := wait.Briefly(t, time.Nanosecond)
	_, err := recipe.New(process.Owner{}).Run(ctx, call(t, agent.RoleImplement, "slow", nil), nil)
	mustFail(t, err, forge.FailKilled, "stopped")
}

func TestReflectIsNoRecipe(t *testing.T) {
	_, err := invocation(t, call(t, agent.RoleReflect, "gofmt", nil))
	mustFail(t, err, forge.FailConfig, "a recipe cannot reflect")
}

// TestImplementIsNotNeeded: nothing was needed if nothing changed and the check
// passes; only then the check runs.
func TestImplementIsNotNeeded(t *testing.T) {
	same, other := func(context.Context) bool { return false }, func(context.Context) bool { return true }
	for _, tt := range []struct {
		name    string
		recipe  string
		changed func(context.Context) bool
		checked bool
		want    bool
	}{
		{"the check passes", "idle", same, true, true},
		{"the check fails", "wrong", same, true, false},
		{"a change", "idle", other, false, false},
		{"it cannot be told", "idle", nil, false, false},
		{"no check", "none", same, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := call(t, agent.RoleImplement, tt.recipe, nil)
			c.Changed = tt.changed
			out, err := invocation(t, c)
			if err != nil || agent.NotNeeded(out.Answer) != tt.want {
				t.Errorf("%v, %s", err, out.Answer)
			}
			if _, err := os.Stat(filepath.Join(c.Dir, "checked")); (err == nil) != tt.checked {
				t.Errorf("the check: %v", err)
			}
		})
	}
}
