package chain

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/pfl-forge/pfl-forge/bus/subjects"
)

// Checkpoint holds the ends of journals at one time. Kept out of reach of those who may
// write to the journals, it proves of a later state that nothing was taken from what there was.
type Checkpoint struct {
	// Version is that of the format.
	Version int `json:"version"`
	// At is when the journals were read, in UTC.
	At time.Time `json:"at"`
	// Heads are the last messages of the journals, sorted by their subjects.
	Heads []Ref `json:"heads"`
}

// checkpointVersion is the version of the format that is written and read.
const checkpointVersion = 1

// NewCheckpoint returns a Checkpoint of the journals that an Audit has read.
func NewCheckpoint(a *Audit, at time.Time) *Checkpoint {
	return &Checkpoint{Version: checkpointVersion, At: at.UTC().Truncate(time.Second), Heads: a.Heads()}
}

// Encode returns the checkpoint as a JSON document.
func (c *Checkpoint) Encode() ([]byte, error) {
	data, err := json.MarshalIndent(c, "", "  ")
	return append(data, '\n'), err
}

// ParseCheckpoint is the reverse of Encode. It refuses what is no checkpoint: one that compares
// with nothing would let everything pass.
func ParseCheckpoint(data []byte) (*Checkpoint, error) {
	var c Checkpoint
	if err := json.Unmarshal(data, &c); err != nil {
		return nil, fmt.Errorf("is no checkpoint: %w", err)
	}
	if c.Version != checkpointVersion {
		return nil, fmt.Errorf("is no checkpoint of version %d, but of %d", checkpointVersion, c.Version)
	}
	if len(c.Heads) == 0 {
		return nil, errors.New("is a checkpoint of no journal, which proves nothing")
	}
	for i := range c.Heads {
		if _, err := subjects.ParseJournal(c.Heads[i].Subject); err != nil {
			return nil, fmt.Errorf("heads[%d].journal: %w", i, err)
		}
		if c.Heads[i].Seq == 0 || c.Heads[i].Hash == (Hash{}) {
			return nil, fmt.Errorf("heads[%d]: sequence or hash is missing", i)
		}
	}
	return &c, nil
}
