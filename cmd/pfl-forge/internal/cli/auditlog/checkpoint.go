package auditlog

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/pfl-forge/pfl-forge/bus/journal/chain"
)

// readCheckpoint reads the file of --since.
func readCheckpoint(path string) (*chain.Checkpoint, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("--since: %w", err)
	}
	c, err := chain.ParseCheckpoint(data)
	if err != nil {
		return nil, fmt.Errorf("--since: %s %w", path, err)
	}
	return c, nil
}

// writeCheckpoint writes the file of --checkpoint. One that is there is replaced as a whole or
// stays: half a checkpoint would be none.
func writeCheckpoint(path string, c *chain.Checkpoint) error {
	data, err := c.Encode()
	if err != nil {
		return fmt.Errorf("--checkpoint: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".checkpoint-*")
	if err != nil {
		return fmt.Errorf("--checkpoint: %w", err)
	}
	defer func() { _ = os.Remove(f.Name()) }() // once it is renamed it is not there
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("--checkpoint: %w", err)
	}
	return nil
}
