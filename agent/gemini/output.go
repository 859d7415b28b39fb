package gemini

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/cli"
	"github.com/pfl-forge/pfl-forge/agent/process"
)

// event is one line of the output.
type event struct {
	Type       string     `json:"type"`
	SessionID  string     `json:"session_id"`
	Model      string     `json:"model"`
	Role       string     `json:"role"`
	Content    string     `json:"content"`
	ToolName   string     `json:"tool_name"`
	ToolID     string     `json:"tool_id"`
	Parameters parameters `json:"parameters"`
	Status     string     `json:"status"`
	Message    string     `json:"message"`
	Error      struct {
		Message string `json:"message"`
	} `json:"error"`
	Stats *struct {
		Total  int64 `json:"total_tokens"`
		Input  int64 `json:"input_tokens"` // those of the cache included
		Output int64 `json:"output_tokens"`
		Cached int64 `json:"cached"`
	} `json:"stats"`
}

type parameters struct {
	FilePath string `json:"file_path"`
	Command  string `json:"command"`
	Pattern  string `json:"pattern"`
	DirPath  string `json:"dir_path"`
}

// reader follows the output. What was used is in the session's file while the turn goes
// on, and in the result at the end.
type reader struct {
	log            *cli.Recorder
	file           cli.Tail
	native         string
	text           strings.Builder  // of the message that is being said
	usageByMessage map[string]usage // by message
	earlierTurns   map[string]bool  // messages of earlier turns
	tools          map[string]event // by id
	result         *event
	problem        string // that it told of
	garbage        int
}

type usage struct {
	Input    int64 `json:"input"` // those of the cache included
	Output   int64 `json:"output"`
	Cached   int64 `json:"cached"`
	Thoughts int64 `json:"thoughts"`
	Tool     int64 `json:"tool"`
}

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
	clear(r.usageByMessage)
	return r
}

// onSessionLine takes a line of the session's file.
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

func (r *reader) Line(line []byte) {
	var e event
	if json.Unmarshal(line, &e) != nil || e.Type == "" {
		r.garbage++
		return
	}
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

func (r *reader) flushText() {
	if r.text.Len() > 0 {
		r.log.Text(r.text.String())
		r.text.Reset()
	}
}

func (r *reader) toolResult(e *event) {
	use := r.tools[e.ToolID]
	switch {
	case e.Status == "error":
		r.log.ToolFailed(use.ToolName, e.Error.Message)
	case use.ToolName == "write_file" || use.ToolName == "replace":
		r.log.FileWritten(use.Parameters.FilePath)
	}
}

// readUsage reads what is new in the session's file.
func (r *reader) readUsage() {
	known := len(r.usageByMessage)
	r.file.Read()
	if len(r.usageByMessage) != known {
		r.log.SetUsage(r.usage())
	}
}

func (r *reader) usage() forge.Usage {
	out := forge.Usage{Turns: int64(len(r.usageByMessage))}
	for _, u := range r.usageByMessage {
		out = out.Add(forge.Usage{
			InputTokens: u.Input + u.Tool - u.Cached, CacheReadTokens: u.Cached, OutputTokens: u.Output + u.Thoughts,
		})
	}
	if r.result != nil && r.result.Stats != nil && r.result.Stats.Total > 0 { // side calls are in it as well
		s := r.result.Stats
		return forge.Usage{
			InputTokens: s.Input - s.Cached, CacheReadTokens: s.Cached, OutputTokens: max(s.Output, s.Total-s.Input), Turns: max(out.Turns, 1),
		}
	}
	return out
}

func firstNonEmpty(list ...string) string {
	for _, s := range list {
		if s != "" {
			return s
		}
	}
	return ""
}

var statusOnStderr = regexp.MustCompile(`(?m)^\s*(?:status|code): ([45]\d\d)\b`)

// End explains how it ended. The exit status of an error of the API is the status of
// HTTP, of which a byte is left.
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
	if m := statusOnStderr.FindSubmatch(report.Stderr); m != nil {
		status, _ = strconv.Atoi(string(m[1]))
	}
	return cli.ExitFailure(report, status, firstNonEmpty(r.result.Error.Message, r.problem))
}

// exits are what the CLI's own exit statuses come to.
var exitStatuses = map[int]int{41: 401}
