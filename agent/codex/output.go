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

// event is one line of the output.
type event struct {
	Type     string  `json:"type"`
	ThreadID string  `json:"thread_id"`
	Item     item    `json:"item"`
	Usage    *tokens `json:"usage"`
	Message  string  `json:"message"`
	Error    struct {
		Message string `json:"message"`
	} `json:"error"`
}

type item struct {
	Type    string `json:"type"`
	Text    string `json:"text"`
	Command string `json:"command"`
	Output  string `json:"aggregated_output"`
	Exit    *int   `json:"exit_code"`
	Query   string `json:"query"`
	Tool    string `json:"tool"`
	Status  string `json:"status"`
	Changes []struct {
		Path string `json:"path"`
	} `json:"changes"`
}

// reader follows the output. What was used is in the session's file only, while the
// turn goes on; the output has it at the end, for the whole session.
type reader struct {
	log       *cli.Recorder
	rollout   *rollout
	final     *tokens // of the whole session
	completed bool
	failed    string
	garbage   int
}

func newReader(t *cli.Turn, log *cli.Recorder) *reader {
	return &reader{log: log, rollout: newRollout(t.StateDir, t.Native)}
}

func (r *reader) Line(line []byte) {
	var e event
	if json.Unmarshal(line, &e) != nil || e.Type == "" {
		r.garbage++
		return
	}
	switch e.Type {
	case "thread.started":
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
	if r.rollout.read() {
		r.log.Started("", r.rollout.model)
		r.log.SetUsage(r.rollout.usage())
	}
}

func (r *reader) onItem(i *item, done bool) {
	switch i.Type {
	case "agent_message":
		r.log.Text(i.Text)
	case "reasoning":
		r.log.Thinking(i.Text)
	case "command_execution":
		if !done {
			r.log.ToolUsed("exec_command", i.Command)
		} else if i.Exit != nil && *i.Exit != 0 || i.Status == "failed" || i.Status == "declined" {
			r.log.ToolFailed("exec_command", i.Output)
		}
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

func paths(i *item) string {
	var out []string
	for _, c := range i.Changes {
		out = append(out, c.Path)
	}
	return strings.Join(out, " ")
}

// End looks at what was used for the last time: a turn that was killed counts as well.
func (r *reader) End(report process.Report) *agent.Failure {
	r.rollout.read()
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
