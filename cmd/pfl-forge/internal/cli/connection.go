package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/pfl-forge/pfl-forge/bus"
)

// connection returns how to reach the organisation's NATS.
func (a *app) connection() (bus.Config, error) {
	cfg := bus.Config{URL: a.server, Creds: a.creds}
	if a.profile != "" {
		var err error
		if cfg, err = a.natsContext(a.profile); err != nil {
			return cfg, err
		}
	}
	if a.creds != "" {
		cfg.Creds = a.creds
	}
	if a.tokenFile != "" {
		token, err := os.ReadFile(a.tokenFile)
		if err != nil {
			return cfg, fmt.Errorf("--token-file: %w", err)
		}
		if cfg.Token = strings.TrimSpace(string(token)); cfg.Token == "" {
			return cfg, fmt.Errorf("--token-file: %s is empty", a.tokenFile)
		}
	}
	return cfg, nil
}

// natsContext reads a context as the nats command line keeps them.
func (a *app) natsContext(name string) (bus.Config, error) {
	if name != filepath.Base(name) || name == ".." || name == "." {
		return bus.Config{}, usageError{fmt.Errorf("--context: %q is no name of a NATS context", name)}
	}
	home := a.getenv("XDG_CONFIG_HOME")
	if home == "" {
		home = filepath.Join(a.getenv("HOME"), ".config")
	}
	file := filepath.Join(home, "nats", "context", name+".json")
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return bus.Config{}, fmt.Errorf("--context: there is no NATS context %s (%s)", name, file)
	}
	if err != nil {
		return bus.Config{}, fmt.Errorf("--context: %w", err)
	}
	var c struct {
		URL      string `json:"url"`
		Token    string `json:"token"`
		User     string `json:"user"`
		Password string `json:"password"`
		Creds    string `json:"creds"`
		NKey     string `json:"nkey"`
		Inbox    string `json:"inbox_prefix"`
	}
	if err := json.Unmarshal(text, &c); err != nil {
		return bus.Config{}, fmt.Errorf("--context: %s: %w", file, err)
	}
	if c.User != "" || c.Password != "" {
		return bus.Config{}, fmt.Errorf("--context: %s has a user and a password; use a token, credentials or an nkey", file)
	}
	if c.URL == "" {
		return bus.Config{}, fmt.Errorf("--context: %s has no url", file)
	}
	return bus.Config{URL: c.URL, Token: c.Token, Creds: c.Creds, NKey: c.NKey, InboxPrefix: c.Inbox}, nil
}
