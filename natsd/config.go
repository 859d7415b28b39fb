package natsd

import (
	"errors"
	"fmt"
	"log/slog"
)

// Defaults and bounds of a Config, in bytes.
const (
	defaultMaxStore  = 16 << 30
	defaultMaxMemory = 512 << 20
	maxPurpose       = 120
)

// Config says where a server keeps its store and within which limits. Dir and Logger are
// required.
type Config struct {
	// Root is the directory that Dir may not leave, not even through a symlink:
	// the repository's root. Empty means the directory that holds Dir.
	Root string
	// Dir is the store directory, absolute or relative to Root. It is created
	// with mode 0700, and so are missing parents with 0755.
	Dir string
	// Purpose is one short line, of 120 bytes at most, that tells another process what holds
	// the store, such as "run".
	Purpose string
	// MaxStore bounds the bytes of all file streams together; 0 means 16 GiB.
	MaxStore int64
	// MaxMemory bounds the bytes of all memory streams together; 0 means 512 MiB.
	MaxMemory int64
	// Logger receives the server's own log lines. Its notices are debug lines.
	Logger *slog.Logger
}

// withDefaults returns the Config with its defaults, or what is wrong with it.
func (c Config) withDefaults() (Config, error) {
	switch {
	case c.Dir == "":
		return c, errors.New("natsd: dir is empty")
	case c.Logger == nil:
		return c, errors.New("natsd: logger is missing")
	case c.MaxStore < 0, c.MaxMemory < 0:
		return c, errors.New("natsd: limits must not be negative")
	case len(c.Purpose) > maxPurpose:
		return c, fmt.Errorf("natsd: purpose is longer than %d bytes", maxPurpose)
	}
	if c.MaxStore == 0 {
		c.MaxStore = defaultMaxStore
	}
	if c.MaxMemory == 0 {
		c.MaxMemory = defaultMaxMemory
	}
	return c, nil
}
