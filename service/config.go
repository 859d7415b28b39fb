package service

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
	"github.com/pfl-forge/pfl-forge/internal/credentials"
	"github.com/pfl-forge/pfl-forge/internal/demand"
	"github.com/pfl-forge/pfl-forge/internal/pattern"
	"github.com/pfl-forge/pfl-forge/quota"
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
	// NKey is the path of a file with the seed of an nkey; empty: none. It excludes Creds
	// and TokenFile.
	NKey string
	// CredentialsDir is the directory with a file for each variable that agents log in with;
	// empty: they are in the environment.
	CredentialsDir string
	// TLS names the files of an encrypted connection.
	TLS bus.TLS
	// Replica names this copy of the service, the same after a restart.
	Replica forge.ReplicaID
	// Projects are the repositories of the installation, each id once. See Served.
	Projects []Project
	// Group is that of this replica; empty: it serves the projects without one.
	Group subjects.Group
	// StateDir is absolute, and holds clones, checkouts and the outbox.
	StateDir string
	// CloneAtFirstUse leaves projects alone until their first command comes.
	CloneAtFirstUse bool
	// Listen is the address of the health endpoint; empty: no endpoint.
	Listen string
	// Workers is the number of attempts that run at the same time, 1 to 256.
	Workers int
	// Replicas is the number of servers that keep each stream; 0 leaves existing
	// streams as they are, and creates new ones with 1.
	Replicas int
	// DrainTimeout is how long running attempts may go on after SIGTERM.
	DrainTimeout time.Duration
	// Runner has the settings that only runners read, and Gateway the path of a gateway's.
	Runner  RunnerConfig
	Gateway string
	// Log says what is logged, and how.
	Log LogConfig
	// Commands says where agents and commands run.
	Commands Commands
}

// LogConfig has the least level that is logged, and the format: json or text.
type LogConfig struct {
	Level  slog.Level
	Format string
}

// Project is a served repository.
type Project struct {
	// ID is the name under which intents know it.
	ID forge.ProjectID
	// URL is as git takes it. It may hold a password, so it is never logged.
	URL string
	// Group is that of the replicas that serve it; empty: those without one.
	Group subjects.Group
}

// RunnerConfig has the settings of a runner.
type RunnerConfig struct {
	Notifications string       // the file that says which people are notified; empty: none
	TrustedKeys   string       // the file with the keys by which senders are proven; empty: see Env.Authors
	Quotas        quota.Limits // bounds of the open intents
	Rules         int          // the version of the rules that is not gone beyond; 0: the newest that all runners know
}

// Commands says where agents and commands run.
type Commands struct {
	PodTemplate string        // the path of the template of their pods; empty: they run in namespaces of this machine
	PodImage    string        // of the template's command; empty: as the template says
	Sandbox     demand.Demand // whether a sandbox is needed
	Bounds      demand.Bounds // how much of this machine each command may take
}

// Served returns the projects that this replica serves: those of its group.
func (c *Config) Served() []Project {
	var out []Project
	for _, p := range c.Projects {
		if p.Group == c.Group {
			out = append(out, p)
		}
	}
	return out
}

// Groups returns the groups of the projects.
func (c *Config) Groups() subjects.Groups {
	out := subjects.Groups{}
	for _, p := range c.Projects {
		if p.Group != "" {
			out[p.ID] = p.Group
		}
	}
	return out
}

// Elsewhere returns an error if replicas of another group serve a project. A command for one of
// them reached this replica before the project was moved.
func (c *Config) Elsewhere(id forge.ProjectID) error {
	for _, p := range c.Projects {
		if p.ID == id && p.Group != c.Group {
			return fmt.Errorf("project %s is served by replicas of group %q, and these are of %q", id, p.Group, c.Group)
		}
	}
	return nil
}

// NeedProjects returns an error if there is no project to serve.
func (c *Config) NeedProjects() error {
	switch {
	case len(c.Projects) == 0:
		return errors.New("--project (FORGE_PROJECTS): name at least one repository, as NAME=URL")
	case len(c.Served()) == 0 && c.Group != "":
		return fmt.Errorf("--group (FORGE_GROUP): no project is in group %q: see --project-group (FORGE_PROJECT_GROUPS)", c.Group)
	case len(c.Served()) == 0:
		return errors.New("--project-group (FORGE_PROJECT_GROUPS): every project is in a group, and this copy is in none: " +
			"give it --group (FORGE_GROUP), or leave it out")
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

// credentials returns the directory that CredentialsDir names.
func (c *Config) credentials() credentials.Dir {
	return credentials.Dir{Path: c.CredentialsDir, Setting: "--credentials-dir (FORGE_CREDENTIALS_DIR)"}
}

// LogValue returns the settings for a log, without passwords and paths of secrets.
func (c *Config) LogValue() slog.Value {
	projects := []string{}
	for _, p := range c.Served() {
		projects = append(projects, string(p.ID))
	}
	return slog.GroupValue(
		slog.String("server", hidePasswords(c.Server)),
		slog.Any("projects", projects),
		slog.String("group", string(c.Group)),
		slog.String("state_dir", c.StateDir),
		slog.Int("workers", c.Workers),
		slog.Duration("drain_timeout", c.DrainTimeout),
	)
}

// credentialSettings names the settings of which one says who the service is, each with its
// value.
func (c *Config) credentialSettings() map[string]string {
	return map[string]string{
		"--creds (FORGE_CREDS)": c.Creds, "--token-file (FORGE_TOKEN_FILE)": c.TokenFile, "--nkey (FORGE_NKEY)": c.NKey,
	}
}

// credentialSetting returns the name of the setting that says who the service is; with none,
// the names of all that could.
func (c *Config) credentialSetting() string {
	all := c.credentialSettings()
	names := slices.Sorted(maps.Keys(all))
	for _, name := range names {
		if all[name] != "" {
			return name
		}
	}
	return strings.Join(names, " or ")
}

// The names of settings that go together, for errors.
const (
	tlsPairSettings = "--tls-cert (FORGE_TLS_CERT) and --tls-key (FORGE_TLS_KEY)"
	authorities     = "--tls-ca (FORGE_TLS_CA)"
)

// check returns an error for settings that exclude each other, or do not go together.
func (c *Config) check() error {
	var given []string
	for name, value := range c.credentialSettings() {
		if value != "" {
			given = append(given, name)
		}
	}
	slices.Sort(given)
	switch {
	case len(given) > 1:
		return fmt.Errorf("%s exclude each other: give one", strings.Join(given, " and "))
	case c.NKey != "" && userInServer.MatchString(c.Server):
		return errors.New("--nkey (FORGE_NKEY): --server (FORGE_SERVER) names a user or a token, which would count instead: leave it out")
	case c.Commands.PodTemplate != "" && c.Commands.Sandbox == demand.Unconfined:
		return errors.New("--pod-template (FORGE_POD_TEMPLATE) has everything run in pods, and --sandbox=unconfined (FORGE_SANDBOX) nothing: leave one out")
	case c.Commands.PodTemplate != "" && c.Commands.Bounds != demand.Bounds{}:
		return errors.New("--pod-template (FORGE_POD_TEMPLATE) has everything run in pods, with the limits of the template: " +
			"leave out --command-memory (FORGE_COMMAND_MEMORY) and --command-disk (FORGE_COMMAND_DISK)")
	case (c.TLS.Cert == "") != (c.TLS.Key == ""):
		return errors.New(tlsPairSettings + ": give both or none")
	}
	if err := (bus.TLS{Cert: c.TLS.Cert, Key: c.TLS.Key}).Check(); err != nil {
		return fmt.Errorf("%s: %w", tlsPairSettings, err)
	}
	return nil
}

// userInServer matches a URL with a user or a token before the host.
var userInServer = pattern.New(`://[^/,]*@`)
