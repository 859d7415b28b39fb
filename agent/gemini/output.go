package gemini

import (
	"encoding/json"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/cli"
	"github.com/pfl-forge/pfl-forge/agent/process"
	"github.com/pfl-forge/pfl-forge/internal/pattern"
)

// event is one line of the output. Type decides which fields are set.
type event struct {
	Type      string `json:"type"`
	SessionID string `json:"session_id"`
	Model     string `json:"model"`
	Role      string `json:"role"`
	// Content is a part of a message; the parts come one by one.
	Content  string `json:"content"`
	ToolName string `json:"tool_name"`
	ToolID   string `json:"tool_id"`
	// Parameters are those of a tool_use.
	Parameters parameters `json:"parameters"`
	Status     string     `json:"status"`
	// Output is that of a tool_result.
	Output  string `json:"output"`
	Message string `json:"message"`
	Error   struct {
		Message string `json:"message"`
	} `json:"error"`
	// Stats has the totals of the turn, in a result.
	Stats *struct {
		Total int64 `json:"total_tokens"`
		// Input includes the cached tokens.
		Input  int64 `json:"input_tokens"`
		Output int64 `json:"output_tokens"`
		Cached int64 `json:"cached"`
	} `json:"stats"`
}

// parameters has the subject of a tool's use, for events.
type parameters struct {
	FilePath string `json:"file_path"`
	Command  string `json:"command"`
	Pattern  string `json:"pattern"`
	// DirPath is used by list_directory.
	DirPath string `json:"dir_path"`
}

// reader reads the output. It takes the usage from the session's file while the turn
// goes on, and from the result at its end.
type reader struct {
	log    *cli.Recorder
	file   cli.Tail
	native string
	// text collects the parts of the message that is being streamed.
	text strings.Builder
	// usageByMessage has the usage of this turn's messages, by id.
	usageByMessage map[string]usage
	// earlierTurns has the ids of the messages that earlier turns left in the file.
	earlierTurns map[string]bool
	// tools has the uses of tools, by id.
	tools  map[string]event
	result *event
	// problem is the last error message of the output.
	problem string
	// garbage counts lines that are no events.
	garbage int
}

// usage has the tokens of one message in the session's file.
type usage struct {
	// Input includes the cached tokens.
	Input    int64 `json:"input"`
	Output   int64 `json:"output"`
	Cached   int64 `json:"cached"`
	Thoughts int64 `json:"thoughts"`
	Tool     int64 `json:"tool"`
}

// newReader returns a reader of a turn's output. It reads the file of a resumed
// session, to leave out the usage of earlier turns.
func newReader(t *cli.Turn, log *cli.Recorder) *reader {
	r := &reader{log: log, native: t.Native, usageByMessage: map[string]usage{}, earlierTurns: map[string]bool{}, tools: map[string]event{}}
	r.file = cli.Tail{Line: r.onSessionLine, Find: func() string {
		if r.native == "" {
			return ""
		}
		found, err := sessionFiles(t.StateDir, r.native)
		if err != nil || len(found) == 0 {
			return ""
		}
		return filepath.Join(t.StateDir, found[len(found)-1])
	}}
	r.file.Read()
	for id := range r.usageByMessage {
		r.earlierTurns[id] = true
	}
	// The rest of the file belongs to this turn.
	clear(r.usageByMessage)
	return r
}

// onSessionLine takes one line of the session's file.
func (r *reader) onSessionLine(line []byte) {
	var m struct {
		ID     string `json:"id"`
		Type   string `json:"type"`
		Tokens *usage `json:"tokens"`
	}
	if json.Unmarshal(line, &m) == nil && m.Type == "gemini" && m.Tokens != nil && !r.earlierTurns[m.ID] {
		r.usageByMessage[m.ID] = *m.Tokens
	}
}

// Line takes one line of output, then the new lines of the session's file.
func (r *reader) Line(line []byte) {
	var e event
	if json.Unmarshal(line, &e) != nil || e.Type == "" {
		r.garbage++
		return
	}
	// A message is streamed in parts; any other event ends it.
	if e.Type != "message" || e.Role != "assistant" {
		r.flushText()
	}
	switch e.Type {
	case "init":
		r.native = e.SessionID
		r.log.Started(e.SessionID, e.Model)
	case "message":
		if e.Role == "assistant" {
			r.text.WriteString(e.Content)
		}
	case "tool_use":
		r.tools[e.ToolID] = e
		r.log.ToolUsed(e.ToolName, firstNonEmpty(e.Parameters.FilePath, e.Parameters.Command, e.Parameters.Pattern, e.Parameters.DirPath))
	case "tool_result":
		r.toolResult(&e)
	case "error":
		r.problem = e.Message
	case "result":
		r.result = &e
	}
	r.readUsage()
}

// flushText reports the collected message as a whole.
func (r *reader) flushText() {
	if r.text.Len() > 0 {
		r.log.Text(r.text.String())
		r.text.Reset()
	}
}

// toolResult reports a failed tool, and the file of a successful one that writes.
func (r *reader) toolResult(e *event) {
	use := r.tools[e.ToolID]
	switch {
	case e.Status == "error":
		r.log.ToolFailed(use.ToolName, e.Error.Message)
	case use.ToolName == "run_shell_command":
		r.log.CommandEnded(use.ToolName, e.Output)
	case use.ToolName == "write_file" || use.ToolName == "replace":
		r.log.FileWritten(use.Parameters.FilePath)
	}
}

// readUsage reads the new lines of the session's file.
func (r *reader) readUsage() {
	known := len(r.usageByMessage)
	r.file.Read()
	if len(r.usageByMessage) != known {
		r.log.SetUsage(r.usage())
	}
}

// usage returns the usage of this turn. The result's totals win, because they include
// requests beside the session, such as a summary.
func (r *reader) usage() forge.Usage {
	out := forge.Usage{Turns: int64(len(r.usageByMessage))}
	for _, u := range r.usageByMessage {
		out = out.Add(forge.Usage{
			InputTokens: u.Input + u.Tool - u.Cached, CacheReadTokens: u.Cached, OutputTokens: u.Output + u.Thoughts,
		})
	}
	if r.result != nil && r.result.Stats != nil && r.result.Stats.Total > 0 { // includes requests beside the session
		s := r.result.Stats
		return forge.Usage{
			InputTokens: s.Input - s.Cached, CacheReadTokens: s.Cached, OutputTokens: max(s.Output, s.Total-s.Input), Turns: max(out.Turns, 1),
		}
	}
	return out
}

// firstNonEmpty returns the first string that is not empty.
func firstNonEmpty(list ...string) string {
	for _, s := range list {
		if s != "" {
			return s
		}
	}
	return ""
}

// statusOnStderr finds the HTTP status of an API error.
var statusOnStderr = pattern.New(`(?m)^\s*(?:status|code): ([45]\d\d)\b`)

// End returns why the turn failed. The HTTP status is taken from stderr, because the
// exit status has only its lowest byte.
func (r *reader) End(report process.Report) *agent.Failure {
	r.flushText()
	r.file.Read()
	r.log.SetUsage(r.usage())
	switch {
	case r.result == nil && r.garbage > 0 && report.ExitCode == 0:
		return agent.Fail(forge.FailInvalidOutput, "it printed %d lines that are no events, and no result", r.garbage)
	case r.result == nil:
		return cli.ExitFailure(report, exitStatuses[report.ExitCode], r.problem)
	case report.ExitCode == 0 && r.result.Status == "success":
		return nil
	}
	status := 0
	if m := statusOnStderr.FindStringSubmatch(string(report.Stderr)); m != nil {
		status, _ = strconv.Atoi(m[1])
	}
	return cli.ExitFailure(report, status, firstNonEmpty(r.result.Error.Message, r.problem))
}

// exitStatuses has the HTTP status that each of the CLI's own exit statuses corresponds
// to.
var exitStatuses = map[int]int{41: 401}
