package recipe

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/internal/telemetry"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

// Bounds of the lines that a recipe's each command prints.
const (
	// maxItems is the most lines; more would be more tasks than one intent can have.
	maxItems = 1000
	// maxItem is the longest line, in bytes.
	maxItem = 1024
)

// analyze returns the recipe's tasks, or questions.
func (r *invocation) analyze(ctx context.Context) (agent.Analysis, error) {
	out := agent.Analysis{Risk: string(r.recipe.Risk), Tasks: []agent.Plan{}}
	// A recipe's commands are the repository's own, so the default is a low risk.
	if out.Risk == "" {
		out.Risk = string(forge.RiskLow)
	}
	// Tasks depend on the values, so they are made after the answers.
	if out.Clarifications = r.missingParams(); len(out.Clarifications) > 0 {
		return out, nil
	}
	switch {
	case len(r.recipe.Tasks) > 0:
		out.Tasks = r.namedTasks()
	case r.recipe.Each != "":
		items, err := r.items(ctx)
		if err != nil {
			return out, err
		}
		// An each command that prints nothing found nothing to change.
		if len(items) == 0 {
			out.NothingToDo = fmt.Sprintf("each of recipe %q printed no line", r.call.Recipe.Name)
		}
		for i, item := range items {
			out.Tasks = append(out.Tasks, r.itemTask(i, item))
		}
	default:
		out.Tasks = append(out.Tasks, agent.Plan{Name: r.call.Recipe.Name, Title: r.title(), Plan: r.planText(r.recipe.Run, r.recipe.Check)})
	}
	return out, nil
}

// title returns the recipe's title, or else the intent's, or the recipe's name.
func (r *invocation) title() string {
	if r.recipe.Title != "" {
		return r.recipe.Title
	}
	if r.call.Recipe.Title != "" {
		return r.call.Recipe.Title
	}
	return r.call.Recipe.Name
}

// planText describes the commands and values to the person who approves the plan: all that a
// command gets of a value is in it, whatever a terminal would make of that.
func (r *invocation) planText(command, check string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "recipe %s\nrun: %s\n", r.call.Recipe.Name, strings.TrimSpace(command))
	if check != "" {
		fmt.Fprintf(&b, "check: %s\n", strings.TrimSpace(check))
	}
	for _, p := range r.recipe.Params {
		value, ok := r.call.Recipe.With[p.Name]
		if !ok && p.Default != nil {
			value = *p.Default
		}
		fmt.Fprintf(&b, "%s: %s\n", p.Name, term.Visible(value))
	}
	return b.String()
}

// namedTasks returns the tasks that the recipe lists.
func (r *invocation) namedTasks() []agent.Plan {
	var out []agent.Plan
	for _, t := range r.recipe.Tasks {
		p := agent.Plan{
			Name: t.Name, Title: t.Title, Plan: r.planText(t.Run, r.taskCheck(t.Check)),
			RelevantFiles: t.Files, DependsOn: t.DependsOn,
		}
		if p.Title == "" {
			p.Title = r.title() + ": " + t.Name
		}
		out = append(out, p)
	}
	return out
}

// itemTask returns the task for one line of each. An item that is a file of the
// checkout becomes the task's relevant file.
func (r *invocation) itemTask(i int, item string) agent.Plan {
	p := agent.Plan{
		Name:  fmt.Sprintf("item-%d", i+1),
		Title: term.Short(r.title()+": "+item, 200),
		Plan:  r.planText(r.recipe.Run, r.recipe.Check) + "item: " + item + "\n",
		Item:  item,
	}
	// A path that leads out of the checkout is no relevant file.
	if filepath.IsLocal(item) {
		if _, err := os.Lstat(filepath.Join(r.call.Dir, item)); err == nil {
			p.RelevantFiles = []string{item}
		}
	}
	return p
}

// items runs the each command and returns its lines, without blank and repeated ones.
func (r *invocation) items(ctx context.Context) ([]string, error) {
	var out []string
	var wrong *agent.Failure
	seen := map[string]bool{}
	line := 0
	// Lines are checked while they arrive, but the command runs to its end: its exit
	// status is reported rather than a bad line of a command that failed.
	res, err := r.shell(ctx, telemetry.CommandEach, r.recipe.Each, func(raw []byte) {
		line++
		raw = bytes.TrimSpace(raw)
		if len(raw) == 0 || wrong != nil || seen[string(raw)] {
			return
		}
		item := string(raw)
		if why := badItem(item); why != "" {
			wrong = agent.Fail(forge.FailConfig, "each of recipe %q: line %d %s", r.call.Recipe.Name, line, why)
			return
		}
		if len(out) == maxItems {
			wrong = agent.Fail(forge.FailConfig, "each of recipe %q printed more than %d lines; narrow it down", r.call.Recipe.Name, maxItems)
			return
		}
		seen[item] = true
		out = append(out, item)
	})
	switch {
	case err != nil:
		return nil, err
	case !res.OK():
		return nil, agent.Fail(forge.FailConfig, "each of recipe %q: %s", r.call.Recipe.Name, exitMessage(r.recipe.Each, res))
	case wrong != nil:
		return nil, wrong
	}
	return out, nil
}

// badItem returns why a line cannot be an item; empty if it can.
func badItem(s string) string {
	switch {
	case len(s) > maxItem:
		return fmt.Sprintf("is %d bytes long; at most %d are allowed", len(s), maxItem)
	case !utf8.ValidString(s):
		return "is not UTF-8"
	case strings.ContainsRune(s, '\t'), term.Sanitize(s) != s:
		return fmt.Sprintf("holds control or invisible characters: %q", term.Short(s, 80))
	}
	return ""
}
