package target

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
)

// connection returns how to reach the organisation's NATS. What a flag says counts more
// than what the context says.
func connection(a *kit.App) (bus.Config, error) {
	cfg := bus.Config{URL: a.Server, Creds: a.Creds}
	if a.Context != "" {
		var err error
		if cfg, err = natsContext(a, a.Context); err != nil {
			return cfg, err
		}
	}
	if a.Creds != "" {
		cfg.Creds = a.Creds
	}
	if a.TokenFile != "" {
		token, err := os.ReadFile(a.TokenFile)
		if err != nil {
			return cfg, fmt.Errorf("--token-file: %w", err)
		}
		if cfg.Token = strings.TrimSpace(string(token)); cfg.Token == "" {
			return cfg, fmt.Errorf("--token-file: %s is empty", a.TokenFile)
		}
	}
	return cfg, nil
}

// natsContext reads a context where the nats command line keeps them:
// $XDG_CONFIG_HOME/nats/context/<name>.json.
func natsContext(a *kit.App, name string) (bus.Config, error) {
	if name != filepath.Base(name) || name == ".." || name == "." {
		return bus.Config{}, kit.Usage(fmt.Errorf("--context: %q is not a valid name of a NATS context", name))
	}
	file := filepath.Join(kit.NATSConfig(a.Getenv), "context", name+".json")
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
