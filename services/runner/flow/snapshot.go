package flow

import (
	"embed"
	"encoding/json"
	"fmt"

	"github.com/pfl-forge/pfl-forge"
)

// Sources are the rules as they were compiled, by which package machine names them.
//
//go:embed *.go */*.go
var Sources embed.FS

// Snapshot returns the state of the intent between two events, for RestoreIntent.
func (s *Intent) Snapshot() ([]byte, error) {
	data, err := json.Marshal(&s.intentState)
	if err != nil {
		return nil, fmt.Errorf("writing the state of %s: %w", s.key, err)
	}
	return data, nil
}

// RestoreIntent returns a machine that decides on all further events as the one
// that wrote a snapshot.
func RestoreIntent(key forge.Key, snapshot []byte) (*Intent, error) {
	s := &Intent{key: key}
	if err := json.Unmarshal(snapshot, &s.intentState); err != nil {
		return nil, fmt.Errorf("reading the state of %s: %w", key, err)
	}
	return s, nil
}
