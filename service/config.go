package service

import (
	"errors"
	"log/slog"
	"time"

	"github.com/pfl-forge/pfl-forge"
)

// Config has the settings of a service. [Parse] fills and checks it; after that it is
// read-only.
type Config struct {
	// Server lists the URLs of the NATS servers, separated by commas. They may hold
	// passwords.
	Server string
	// Creds is the path of a NATS credentials file; empty: none.
	Creds string
	// TokenFile is the path of a file with a NATS token; empty: none. It excludes
	// Creds.
	TokenFile string
	// Replica names this copy of the service, the same after a restart.
	Replica forge.ReplicaID
	// Projects are the repositories that are served, each id once.
	Projects []Project
	// StateDir is absolute, and holds clones, checkouts and the outbox.
	StateDir string
	// Listen is the address of the health endpoint; empty: no endpoint.
	Listen string
	// Workers is the number of attempts that run at the same time, 1 to 256.
	Workers int
	// Replicas is the number of servers that keep each stream; 0 leaves existing
	// streams as they are, and creates new ones with 1.
	Replicas int
	// DrainTimeout is how long running attempts may go on after SIGTERM.
	DrainTimeout time.Duration
	// Notifications is the path of the file that says which people are notified;
	// empty: none.
	Notifications string
	// LogLevel is the least level that is logged.
	LogLevel slog.Level
	// LogFormat is json or text.
	LogFormat string

	// RequireSandbox runs everything in a sandbox, without the paths that projects
	// grant.
	RequireSandbox bool
}

// Project is a served repository.
type Project struct {
	// ID is the name under which intents know it.
	ID forge.ProjectID
	// URL is as git takes it. It may hold a password, so it is never logged.
	URL string
}

// NeedProjects returns an error if no project is configured.
func (c *Config) NeedProjects() error {
	if len(c.Projects) == 0 {
		return errors.New("--project (FORGE_PROJECTS): name at least one repository, as NAME=URL")
	}
	return nil
}

// Token returns the content of the token file, or "" where none is configured. It
// reads the file each time, because tokens are replaced.
func (c *Config) Token() (string, error) {
	if c.TokenFile == "" {
		return "", nil
	}
	return readToken(c.TokenFile)
}

// LogValue returns the settings for a log, without passwords and paths of secrets.
func (c *Config) LogValue() slog.Value {
	projects := make([]string, len(c.Projects))
	for i, p := range c.Projects {
		projects[i] = string(p.ID)
	}
	return slog.GroupValue(
		slog.String("server", hidePasswords(c.Server)),
		slog.Any("projects", projects),
		slog.String("state_dir", c.StateDir),
		slog.Int("workers", c.Workers),
		slog.Duration("drain_timeout", c.DrainTimeout),
	)
}

// check returns an error for settings that exclude each other.
func (c *Config) check() error {
	if c.Creds != "" && c.TokenFile != "" {
		return errors.New("--creds (FORGE_CREDS) and --token-file (FORGE_TOKEN_FILE) exclude each other: give one")
	}
	return nil
}
