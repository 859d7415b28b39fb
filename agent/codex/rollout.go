package codex

import (
	"bytes"
	"encoding/json"
	"path/filepath"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent/cli"
)

// tokens are those of a whole session, over all its turns.
type tokens struct {
	Input      int64 `json:"input_tokens"` // those of the cache included
	CacheRead  int64 `json:"cached_input_tokens"`
	CacheWrite int64 `json:"cache_write_input_tokens"`
	Output     int64 `json:"output_tokens"`
}

// rollout is the file of a session: what was used so far, and by which model.
type rollout struct {
	file    cli.Tail
	native  string
	model   string
	atStart tokens // when the turn began
	latest  tokens // now
	calls   int64  // of the model in this turn
}

// newRollout reads what the session used before.
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
	r.file.Read()
	r.atStart, r.calls = r.latest, 0
	return r
}

// read takes in what is new, and reports whether the usage changed.
func (r *rollout) read() bool {
	was := r.latest
	r.file.Read()
	return r.latest != was
}

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
	case e.Payload.Type == "token_count" && e.Payload.Info != nil && e.Payload.Info.Total != r.latest:
		r.latest = e.Payload.Info.Total
		r.calls++
	}
}

// usage is that of this turn.
func (r *rollout) usage() forge.Usage {
	read, write := r.latest.CacheRead-r.atStart.CacheRead, r.latest.CacheWrite-r.atStart.CacheWrite
	return forge.Usage{
		InputTokens: r.latest.Input - r.atStart.Input - read - write, CacheReadTokens: read, CacheWriteTokens: write,
		OutputTokens: r.latest.Output - r.atStart.Output, Turns: r.calls,
	}
}
