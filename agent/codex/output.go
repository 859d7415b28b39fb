package codex

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/cli"
	"github.com/pfl-forge/pfl-forge/agent/process"
)

// event is one line of the output. Type decides which fields are set.
type event struct {
	Type string `json:"type"`
	// ThreadID is the CLI's id of the session.
	ThreadID string `json:"thread_id"`
	Item     item   `json:"item"`
	// Usage has the totals of the whole session, not of the turn.
	Usage   *tokens `json:"usage"`
	Message string  `json:"message"`
	Error   struct {
		Message string `json:"message"`
	} `json:"error"`
}

// item is a step of the agent: a message, a command, a change of files.
type item struct {
	// Type decides which fields are set.
	Type    string `json:"type"`
	Text    string `json:"text"`
	Command string `json:"command"`
	Output  string `json:"aggregated_output"`
	// Exit is the exit status of a command; nil while it runs.
	Exit  *int   `json:"exit_code"`
	Query string `json:"query"`
	Tool  string `json:"tool"`
	// Status is failed or declined for a command that did not run to its end.
	Status string `json:"status"`
	// Changes lists the files of a patch.
	Changes []struct {
		Path string `json:"path"`
	} `json:"changes"`
}

// reader reads the output. It takes the usage from the rollout while the turn goes on;
// the output has it only at the end, as a total of the whole session.
type reader struct {
	log     *cli.Recorder
	rollout *rollout
	// final is the session's total from the output; nil before the turn is complete.
	final *tokens
	// completed says that the turn ended as the CLI intends.
	completed bool
	// failed is the CLI's last error message.
	failed string
	// garbage counts lines that are no events.
	garbage int
}

// newReader returns a reader of a turn's output.
func newReader(t *cli.Turn, log *cli.Recorder) *reader {
	return &reader{log: log, rollout: newRollout(t.StateDir, t.Native)}
}

// Line takes one line of output, then the new lines of the rollout.
func (r *reader) Line(line []byte) {
	var e event
	if json.Unmarshal(line, &e) != nil || e.Type == "" {
		r.garbage++
		return
	}
	switch e.Type {
	case "thread.started":
		// From now on the rollout can be found.
		r.rollout.native = e.ThreadID
		r.log.Started(e.ThreadID, "")
	case "item.started":
		r.onItem(&e.Item, false)
	case "item.completed":
		r.onItem(&e.Item, true)
	case "turn.completed":
		r.completed = true
		r.final = e.Usage
	case "turn.failed":
		r.failed = e.Error.Message
	case "error":
		if cli.Contains(e.Message, "reconnecting", "retrying") {
			r.log.Waiting(e.Message, time.Time{})
		} else {
			r.failed = e.Message
		}
	}
	// The rollout may have new usage after any event.
	if r.rollout.read() {
		r.log.Started("", r.rollout.model)
		r.log.SetUsage(r.rollout.usage())
	}
}

// onItem takes an item when it starts and when it is done.
func (r *reader) onItem(i *item, done bool) {
	switch i.Type {
	case "agent_message":
		r.log.Text(i.Text)
	case "reasoning":
		r.log.Thinking(i.Text)
	case "command_execution":
		switch {
		case !done:
			r.log.ToolUsed("exec_command", i.Command)
		case i.Exit != nil && *i.Exit != 0 || i.Status == "failed" || i.Status == "declined":
			r.log.ToolFailed("exec_command", i.Output)
		default:
			r.log.CommandEnded("exec_command", i.Output)
		}
	// Only a completed change has happened.
	case "file_change":
		if !done {
			break
		}
		r.log.ToolUsed("apply_patch", paths(i))
		for _, c := range i.Changes {
			r.log.FileWritten(c.Path)
		}
	case "web_search":
		if done {
			r.log.ToolUsed("web_search", i.Query)
		}
	case "mcp_tool_call":
		if done {
			r.log.ToolUsed(i.Tool, "")
		}
	}
}

// paths returns the changed files of an item, for an event.
func paths(i *item) string {
	var out []string
	for _, c := range i.Changes {
		out = append(out, c.Path)
	}
	return strings.Join(out, " ")
}

// End reads the rollout for the last time, so that a killed turn is counted too, and
// returns why the turn failed.
func (r *reader) End(report process.Report) *agent.Failure {
	r.rollout.read()
	// The output's total is the last word.
	if r.final != nil {
		r.rollout.latest, r.rollout.calls = *r.final, max(r.rollout.calls, 1)
	}
	r.log.SetUsage(r.rollout.usage())
	switch {
	case r.failed != "":
		return cli.ExitFailure(report, 0, r.failed)
	case report.ExitCode != 0:
		return cli.ExitFailure(report, 0, "")
	case !r.completed && r.garbage > 0:
		return agent.Fail(forge.FailInvalidOutput, "it printed %d lines that are no events, and did not complete its turn", r.garbage)
	case !r.completed:
		return agent.Fail(forge.FailCrashed, "it ended without completing its turn; %s", report.Stderr)
	}
	return nil
}
