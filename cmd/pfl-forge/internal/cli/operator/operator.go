// Package operator is the command that starts a session in which a person talks
// to an agent that drives pfl-forge for them.
//
// The session is Claude Code with the person's own login, and takes the place
// of this process: terminal, signals and exit code are its own. It is told the
// Situation, a page of text with the intents and the pending decisions at this
// moment, and gets no tool but Bash. It reads by commands of pfl-forge without
// asking; the person is asked before it runs anything else.
package operator

import (
	_ "embed"
	"fmt"
	"strings"
	"text/template"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent/prompt"
)

//go:embed operator.md
var text string

var page = template.Must(template.New("operator").Option("missingkey=error").Funcs(template.FuncMap{"line": prompt.Line}).Parse(text))

// Bounds of the lists in the session's first prompt.
const (
	maxIntents = 60
	maxWaiting = 20
)

// Situation is the state of a project when the session begins.
type Situation struct {
	Project forge.ProjectID
	// Branch is the one that changes go to; empty if it is not known.
	Branch string
	// Program is pfl-forge as it is called.
	Program string
	// Running says that a run goes on.
	Running bool
	Intents []forge.Summary
	Waiting []Entry
	Now     time.Time
}

// Entry is something that waits for a person.
type Entry struct {
	ID       forge.IntentID
	Title    string
	Why      string
	Asks     []string
	Commands []string // what a person can do
}

// Prompt returns the first prompt of the session: the agent's task, and how things stand.
func (s *Situation) Prompt() (string, error) {
	var b strings.Builder
	err := page.Execute(&b, map[string]any{
		"Project": s.Project, "Branch": s.Branch, "Program": s.Program, "Running": s.Running,
		"Time": s.Now.UTC().Format(time.RFC3339), "State": s.state(), "Waiting": s.waiting(),
	})
	return b.String(), err
}

// state is the list of the intents that are not over.
func (s *Situation) state() string {
	var lines []string
	over := 0
	for i := range s.Intents {
		sum := &s.Intents[i]
		if sum.Status.Ended() && !sum.Status.Failed() {
			over++
			continue
		}
		line := fmt.Sprintf("%s: %s", sum.Key.Intent, sum.Status)
		if sum.TaskCount > 0 {
			line += fmt.Sprintf(", %d of %d tasks done", sum.TasksDone, sum.TaskCount)
		}
		lines = append(lines, line+", "+prompt.Line(sum.Title))
	}
	left := len(lines) - maxIntents
	if left > 0 {
		lines = append(lines[:maxIntents], fmt.Sprintf("and %d more: %s status", left, s.Program))
	}
	if over > 0 {
		lines = append(lines, fmt.Sprintf("%d more are done, rejected or cancelled", over))
	}
	if len(lines) == 0 {
		return "There are no intents yet."
	}
	return prompt.Text("intents", strings.Join(lines, "\n"))
}

// waiting returns the intents that wait for a person, as lines of text.
func (s *Situation) waiting() string {
	var lines []string
	for i := range s.Waiting[:min(len(s.Waiting), maxWaiting)] {
		e := &s.Waiting[i]
		lines = append(lines, fmt.Sprintf("%s, %s: %s", e.ID, prompt.Line(e.Title), prompt.Line(e.Why)))
		for _, q := range e.Asks {
			lines = append(lines, "  asks: "+prompt.Line(q))
		}
		for _, c := range e.Commands {
			lines = append(lines, "  > "+c)
		}
	}
	if more := len(s.Waiting) - maxWaiting; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more: %s inbox --list", more, s.Program))
	}
	return prompt.Text("inbox", strings.Join(lines, "\n"))
}

// looking are the commands that the agent may run without asking the person: they only
// look. Everything else is asked for at the terminal.
var looking = []string{"status", "inbox", "clarifications", "show", "logs", "history", "costs", "goal status", "goal list", "version", "help"}

// Args returns the arguments of Claude Code for the session. Model and first may be
// empty; first is the person's first message.
//
// The repository's own settings do not count: its hooks and permissions could do more
// than the person wants. The person's do, and so does their login.
func Args(system, program, model, first string) []string {
	var allowed []string
	for _, c := range looking {
		allowed = append(allowed, fmt.Sprintf("Bash(%s %s:*)", program, c))
	}
	args := []string{
		"--tools", "Bash", "--allowedTools", strings.Join(allowed, ","), "--setting-sources", "user", "--strict-mcp-config",
		// What is not allowed above is asked for, also where the person lets Claude Code decide by
		// itself in other sessions. Newer versions call it manual, and take this name, too.
		"--permission-mode", "default", "--append-system-prompt", system,
	}
	if model != "" {
		args = append(args, "--model", model)
	}
	if first != "" {
		args = append(args, "--", first)
	}
	return args
}
