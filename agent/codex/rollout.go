package codex

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
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

// rollout reads the file of a session as it grows.
type rollout struct {
	state   string
	path    string // once there is one
	native  string
	offset  int64
	partial []byte
	before  tokens // when the turn began
	last    tokens // now
	calls   int64  // of the model in this turn
}

func newRollout(state, native string) *rollout {
	r := &rollout{state: state}
	if native != "" {
		r.named(native)
		r.read()
		r.before, r.calls = r.last, 0
	}
	return r
}

func (r *rollout) named(native string) { r.native = native }

// read takes in what is new, and reports whether the usage changed.
func (r *rollout) read() bool {
	if r.path == "" {
		if r.native == "" {
			return false
		}
		found, err := files(r.state, r.native)
		if err != nil || len(found) == 0 {
			return false
		}
		r.path = filepath.Join(r.state, found[0])
	}
	f, err := os.Open(r.path)
	if err != nil {
		return false
	}
	defer f.Close()
	data, err := io.ReadAll(io.NewSectionReader(f, r.offset, 1<<40))
	if err != nil {
		return false
	}
	r.offset += int64(len(data))
	data = append(r.partial, data...)
	changed := false
	for {
		line, rest, found := bytes.Cut(data, []byte("\n"))
		if !found {
			r.partial = bytes.Clone(data)
			return changed
		}
		changed = r.line(line) || changed
		data = rest
	}
}

func (r *rollout) line(line []byte) bool {
	if !bytes.Contains(line, []byte(`"token_count"`)) {
		return false
	}
	var e struct {
		Payload struct {
			Type string `json:"type"`
			Info *struct {
				Total tokens `json:"total_token_usage"`
			} `json:"info"`
		} `json:"payload"`
	}
	if json.Unmarshal(line, &e) != nil || e.Payload.Type != "token_count" || e.Payload.Info == nil || e.Payload.Info.Total == r.last {
		return false
	}
	r.last = e.Payload.Info.Total
	r.calls++
	return true
}

// usage is that of this turn.
func (r *rollout) usage() forge.Usage {
	read, write := r.last.CacheRead-r.before.CacheRead, r.last.CacheWrite-r.before.CacheWrite
	return forge.Usage{
		InputTokens: r.last.Input - r.before.Input - read - write, CacheReadTokens: read, CacheWriteTokens: write,
		OutputTokens: r.last.Output - r.before.Output, Turns: r.calls,
	}
}

var _ cli.Reader = (*reader)(nil)
