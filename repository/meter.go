package repository

import (
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
)

// meter keeps what an attempt has used so far in a file. A service that is killed
// cannot report it; its next life, which goes on with the attempt, does.
type meter struct {
	path    string
	attempt string
	used    func() forge.Usage // before the call that runs
}

type reading struct {
	Attempt string      `json:"attempt"`
	Usage   forge.Usage `json:"usage"`
}

// meter begins to count a call, and adds what a former life used for the same attempt.
func (j *Job) meter(stateDir string) *meter {
	a := j.Command.Attempt
	a.Claim = 0 // another claim goes on with the same attempt
	m := &meter{
		path: filepath.Join(stateDir, "used.json"), attempt: a.String(),
		used: func() forge.Usage { return j.Result.Usage },
	}
	var before reading
	if data, err := os.ReadFile(m.path); !j.metered && err == nil && json.Unmarshal(data, &before) == nil && before.Attempt == m.attempt {
		j.Result.Usage = j.Result.Usage.Add(before.Usage)
	}
	j.metered = true
	return m
}

// watch notes what is used, and passes on what happens.
func (m *meter) watch(next func(agent.Event)) func(agent.Event) {
	return func(e agent.Event) {
		if e.Kind == agent.EventUsage {
			m.write(m.used().Add(e.Usage))
		}
		next(e)
	}
}

// write is best effort: nothing of the work hangs on it.
func (m *meter) write(u forge.Usage) {
	data, err := json.Marshal(reading{m.attempt, u})
	if err != nil {
		return
	}
	if os.WriteFile(m.path+".new", data, 0o600) == nil {
		_ = os.Rename(m.path+".new", m.path)
	}
}
