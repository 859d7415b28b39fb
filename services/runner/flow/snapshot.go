package flow

import (
	"encoding/json"
	"fmt"

	"github.com/pfl-forge/pfl-forge"
)

// Snapshot returns the state of the intent between two events. RestoreIntent reads it
// back; what that returns decides on all further events as this one would.
func (s *Intent) Snapshot() ([]byte, error) {
	data, err := json.Marshal(&s.intentState)
	if err != nil {
		return nil, fmt.Errorf("writing the state of %s: %w", s.key, err)
	}
	return data, nil
}

// RestoreIntent returns the machine of an intent in the state of a snapshot.
func RestoreIntent(key forge.Key, snapshot []byte) (*Intent, error) {
	s := &Intent{key: key}
	if err := json.Unmarshal(snapshot, &s.intentState); err != nil {
		return nil, fmt.Errorf("reading the state of %s: %w", key, err)
	}
	return s, nil
}

// Snapshot returns the state of the project as JSON. RestoreProject makes a project
// of it that decides on every further event as this one.
func (p *Project) Snapshot() ([]byte, error) {
	data, err := json.Marshal(&p.state)
	if err != nil {
		return nil, fmt.Errorf("writing the state of %s: %w", p.key, err)
	}
	return data, nil
}

// RestoreProject returns the state machine that wrote a snapshot.
func RestoreProject(key forge.Key, snapshot []byte) (*Project, error) {
	p := NewProject(key)
	if err := json.Unmarshal(snapshot, &p.state); err != nil {
		return nil, fmt.Errorf("reading the state of %s: %w", key, err)
	}
	return p, nil
}
