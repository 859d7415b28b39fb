package codex

import (
	"bytes"
	"encoding/json"
	"path/filepath"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent/cli"
)

// tokens has the totals of a session over all its turns.
type tokens struct {
	// Input includes the tokens that were read from or written to the cache.
	Input      int64 `json:"input_tokens"`
	CacheRead  int64 `json:"cached_input_tokens"`
	CacheWrite int64 `json:"cache_write_input_tokens"`
	Output     int64 `json:"output_tokens"`
}

// rollout follows the file of a session, which has the usage so far and the model.
type rollout struct {
	file cli.Tail
	// native is the CLI's id of the session; empty until the output names it.
	native string
	model  string
	// atStart has the session's totals when the turn began.
	atStart tokens
	// latest has the session's totals now.
	latest tokens
	// calls counts the requests to the model in this turn.
	calls int64
}

// newRollout returns a follower of the session's file, with the usage of earlier turns
// read into atStart.
func newRollout(state, native string) *rollout {
	r := &rollout{native: native}
	r.file = cli.Tail{Line: r.onLine, Find: func() string {
		if r.native == "" {
			return ""
		}
		found, err := rolloutFiles(state, r.native)
		if err != nil || len(found) == 0 {
			return ""
		}
		return filepath.Join(state, found[0])
	}}
	// Of a resumed session, the file has the usage of earlier turns already.
	r.file.Read()
	r.atStart, r.calls = r.latest, 0
	return r
}

// read takes the new lines, and reports whether the usage changed.
func (r *rollout) read() bool {
	was := r.latest
	r.file.Read()
	return r.latest != was
}

// onLine takes one line of the file. Most are large and have no usage, so they are
// filtered before they are parsed.
func (r *rollout) onLine(line []byte) {
	if !bytes.Contains(line, []byte(`"token_count"`)) && !bytes.Contains(line, []byte(`"turn_context"`)) {
		return
	}
	var e struct {
		Type    string `json:"type"`
		Payload struct {
			Type  string `json:"type"`
			Model string `json:"model"`
			Info  *struct {
				Total tokens `json:"total_token_usage"`
			} `json:"info"`
		} `json:"payload"`
	}
	switch {
	case json.Unmarshal(line, &e) != nil:
	case e.Type == "turn_context" && e.Payload.Model != "":
		r.model = e.Payload.Model
	// The CLI repeats a count that has not changed.
	case e.Payload.Type == "token_count" && e.Payload.Info != nil && e.Payload.Info.Total != r.latest:
		r.latest = e.Payload.Info.Total
		r.calls++
	}
}

// usage returns the usage of this turn. Input tokens exclude those of the cache.
func (r *rollout) usage() forge.Usage {
	read, write := r.latest.CacheRead-r.atStart.CacheRead, r.latest.CacheWrite-r.atStart.CacheWrite
	return forge.Usage{
		InputTokens: r.latest.Input - r.atStart.Input - read - write, CacheReadTokens: read, CacheWriteTokens: write,
		OutputTokens: r.latest.Output - r.atStart.Output, Turns: r.calls,
	}
}
