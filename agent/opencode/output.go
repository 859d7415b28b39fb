package opencode

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/cli"
	"github.com/pfl-forge/pfl-forge/agent/process"
)

// event is one line of the output. Type decides which fields are set.
type event struct {
	Type      string `json:"type"`
	SessionID string `json:"sessionID"`
	Part      part   `json:"part"`
	Error     struct {
		Name string `json:"name"`
		Data struct {
			Message string `json:"message"`
			Status  int    `json:"statusCode"`
			Body    string `json:"responseBody"`
		} `json:"data"`
	} `json:"error"`

	// Status is 0 if the model did not answer.
	Status int `json:"status"`
	// Message is the body of the refusal.
	Message string `json:"message"`
	// After is the Retry-After header, in seconds.
	After string `json:"after"`
}

// part is a part of a message: text, reasoning, the use of a tool, or the end of a
// step.
type part struct {
	Text   string `json:"text"`
	Tool   string `json:"tool"`
	Tokens struct {
		// Input excludes the cached tokens.
		Input     int64 `json:"input"`
		Output    int64 `json:"output"`
		Reasoning int64 `json:"reasoning"`
		Cache     struct {
			Read  int64 `json:"read"`
			Write int64 `json:"write"`
		} `json:"cache"`
	} `json:"tokens"`
	// State is that of a tool's use: its status, its input, what it printed,
	// and the error if it failed.
	State struct {
		Status   string `json:"status"`
		Error    string `json:"error"`
		Output   string `json:"output"`
		Metadata struct {
			// Exit is the exit status of a command; nil if it was ended.
			Exit *int `json:"exit"`
		} `json:"metadata"`
		Input struct {
			FilePath string `json:"filePath"`
			Command  string `json:"command"`
			Pattern  string `json:"pattern"`
			Path     string `json:"path"`
		} `json:"input"`
	} `json:"state"`
}

// reader reads the output, which has the usage of every request to the model.
type reader struct {
	log  *cli.Recorder
	turn *cli.Turn
	// usage is the turn's total so far.
	usage forge.Usage
	// retries is how many more refusals the turn may survive.
	retries int
	// finished says that the last request to the model succeeded.
	finished bool
	// status and problem are those of the last error event.
	status int
	// problem is the error's name, message and response.
	problem string
	// garbage counts lines that are no events.
	garbage int
}

// defaultRetries applies without cli.RetriesVariable.
const defaultRetries = 4

// newReader returns a reader of a turn's output.
func newReader(t *cli.Turn, log *cli.Recorder) *reader {
	retries, err := strconv.Atoi(t.Getenv(cli.RetriesVariable))
	if err != nil {
		retries = defaultRetries
	}
	return &reader{turn: t, log: log, retries: retries}
}

// Line takes one line of output.
func (r *reader) Line(line []byte) {
	var e event
	if json.Unmarshal(line, &e) != nil || e.Type == "" {
		r.garbage++
		return
	}
	if e.SessionID != "" {
		r.log.Started(nativeID(r.turn, e.SessionID), model(r.turn))
	}
	switch e.Type {
	case "text":
		r.log.Text(e.Part.Text)
	case "reasoning":
		r.log.Thinking(e.Part.Text)
	case "tool_use":
		r.onTool(&e.Part)
	case "step_finish":
		r.onStep(&e.Part)
	case "refused":
		r.onRefused(&e)
	case "error":
		r.status, r.problem = e.Error.Data.Status, e.Error.Name+" "+e.Error.Data.Message+" "+e.Error.Data.Body
	}
}

// onTool reports the use of a tool, which the output has only when it is over.
func (r *reader) onTool(p *part) {
	in := &p.State.Input
	on := ""
	for _, s := range []string{in.Command, in.FilePath, in.Pattern, in.Path} {
		if s != "" {
			on = s
			break
		}
	}
	r.log.ToolUsed(p.Tool, on)
	switch {
	case p.State.Status == "error":
		r.log.ToolFailed(p.Tool, p.State.Error)
	case p.Tool == "bash" && p.State.Metadata.Exit != nil && *p.State.Metadata.Exit != 0:
		r.log.ToolFailed(p.Tool, p.State.Output)
	case p.Tool == "bash":
		r.log.CommandEnded(p.Tool, p.State.Output)
	case p.Tool == "write" || p.Tool == "edit":
		r.log.FileWritten(in.FilePath)
	}
}

// onStep adds the usage of one request to the model.
func (r *reader) onStep(p *part) {
	r.finished = true
	u := &p.Tokens
	r.usage = r.usage.Add(forge.Usage{
		InputTokens: u.Input, OutputTokens: u.Output + u.Reasoning, CacheReadTokens: u.Cache.Read, CacheWriteTokens: u.Cache.Write, Turns: 1,
	})
	r.log.SetUsage(r.usage)
}

// maxWait is the longest wait that the model may ask for without ending the turn.
const maxWait = time.Minute

// onRefused takes a report of the plugin that the model refused a request. It ends the
// turn for failures that opencode would retry for ever; others it reports by itself.
func (r *reader) onRefused(e *event) {
	r.finished = false
	f := cli.Classify(e.Status, e.Message)
	if f == nil {
		return
	}
	seconds, _ := strconv.ParseFloat(e.After, 64)
	wait := time.Duration(seconds * float64(time.Second))
	if wait > 0 && f.Until.IsZero() {
		f.Until = time.Now().Add(wait).UTC().Truncate(time.Second)
	}
	// A used-up quota ends the turn at once; a busy model does after some retries.
	switch f.Reason {
	case forge.FailQuota:
	case forge.FailRateLimited, forge.FailOverloaded:
		if r.retries--; r.retries >= 0 && wait <= maxWait {
			r.log.Waiting(e.Message, f.Until)
			return
		}
	default:
		return
	}
	r.log.Abort(f)
}

// End returns why the turn failed, or nil.
func (r *reader) End(report process.Report) *agent.Failure {
	switch {
	case r.problem != "":
		return cli.ExitFailure(report, r.status, r.problem)
	case report.ExitCode != 0:
		return cli.ExitFailure(report, 0, "")
	case !r.finished && r.garbage > 0:
		return agent.Fail(forge.FailInvalidOutput, "it printed %d lines that are no events, and did not finish", r.garbage)
	case !r.finished:
		return agent.Fail(forge.FailCrashed, "it ended without finishing; %s", report.Stderr)
	}
	return nil
}
