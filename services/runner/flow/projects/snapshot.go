package projects

import (
	"encoding/json"
	"fmt"

	"github.com/pfl-forge/pfl-forge"
)

// Snapshot returns the state of the project as JSON, for Restore.
func (p *Project) Snapshot() ([]byte, error) {
	data, err := json.Marshal(&p.state)
	if err != nil {
		return nil, fmt.Errorf("writing the state of %s: %w", p.key, err)
	}
	return data, nil
}

// Restore returns a machine that decides on all further events as the one that wrote a snapshot.
func Restore(key forge.Key, snapshot []byte) (*Project, error) {
	p := New(key)
	if err := json.Unmarshal(snapshot, &p.state); err != nil {
		return nil, fmt.Errorf("reading the state of %s: %w", key, err)
	}
	return p, nil
}
