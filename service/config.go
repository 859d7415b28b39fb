package service

import (
	"errors"
	"log/slog"
	"time"

	"github.com/pfl-forge/pfl-forge"
)

// Config is what every service is told from outside. [Parse] fills and checks it.
type Config struct {
	Server        string          // URLs of the NATS servers, separated by commas
	Creds         string          // path of a NATS credentials file; empty: none
	TokenFile     string          // path of a file that holds a token; empty: none
	Replica       forge.ReplicaID // names this copy of the service among all copies
	Projects      []Project       // the repositories that are served, each id once
	StateDir      string          // absolute; clones, checkouts and logs live here
	Listen        string          // address of the health endpoint; empty: no endpoint
	Workers       int             // attempts that run at the same time, 1 to 256
	Replicas      int             // of every stream; 0 leaves those that exist as they are, and makes new ones with 1
	DrainTimeout  time.Duration   // how long running work may go on after SIGTERM
	Notifications string          // path of a file that says whom to tell what needs people; empty: nobody
	LogLevel      slog.Level      // what is less urgent is not logged
	LogFormat     string          // json or text

	// RequireSandbox has everything run in a sandbox, without the paths that projects grant.
	RequireSandbox bool
}

// Project is a repository and the name that its intents know it by.
type Project struct {
	ID  forge.ProjectID
	URL string // as git takes it; may hold a password, so it is never logged
}

// NeedProjects returns an error if no project is configured.
func (c *Config) NeedProjects() error {
	if len(c.Projects) == 0 {
		return errors.New("--project (FORGE_PROJECTS): name at least one repository, as NAME=URL")
	}
	return nil
}

// Token returns the content of the token file, or "" where none is configured.
func (c *Config) Token() (string, error) {
	if c.TokenFile == "" {
		return "", nil
	}
	return readToken(c.TokenFile)
}

// LogValue leaves out what may hold a secret.
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

// check is about what one setting alone cannot say.
func (c *Config) check() error {
	if c.Creds != "" && c.TokenFile != "" {
		return errors.New("--creds (FORGE_CREDS) and --token-file (FORGE_TOKEN_FILE) exclude each other: give one")
	}
	return nil
}
