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
