package service

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
	"github.com/pfl-forge/pfl-forge/internal/demand"
	"github.com/pfl-forge/pfl-forge/quota"
)

// setting is one setting of a service, given as a flag or in the environment.
// Parsing, conflicts, errors and the help text are made from this table alone.
type setting struct {
	flag, env string
	// value is the placeholder in the help text.
	value string
	usage string
	// initial returns the default as a text; nil: there is none.
	initial func(d defaults) string
	// set parses a text into the configuration.
	set func(c *Config, s string) error
	// many settings may be repeated; in the environment, commas separate them.
	many bool
}

// defaults has the values that defaults are derived from.
type defaults struct {
	service string
	replica forge.ReplicaID
	getenv  func(string) string
}

// settings returns the table, in the order of the help text. StateDir comes after
// Replica, because its default contains it.
func settings() []setting {
	setReplica := parsed(forge.ParseReplicaID, func(c *Config) *forge.ReplicaID { return &c.Replica })
	setGroup := parsed(subjects.ParseGroup, func(c *Config) *subjects.Group { return &c.Group })
	setSandbox := parsed(demand.Parse, func(c *Config) *demand.Demand { return &c.Commands.Sandbox })
	setMemory := parsed(demand.ParseSize, func(c *Config) *int64 { return &c.Commands.Bounds.Memory })
	setDisk := parsed(demand.ParseSize, func(c *Config) *int64 { return &c.Commands.Bounds.Disk })
	return []setting{
		{flag: "server", env: "FORGE_SERVER", value: "URL,...", usage: "NATS servers", initial: fixed("nats://127.0.0.1:4222"), set: setServer},
		{flag: "creds", env: "FORGE_CREDS", value: "FILE", usage: "NATS credentials", set: setFile(func(c *Config) *string { return &c.Creds })},
		{flag: "token-file", env: "FORGE_TOKEN_FILE", value: "FILE", usage: "file that holds a NATS token", set: setTokenFile},
		{flag: "nkey", env: "FORGE_NKEY", value: "FILE", usage: "file that holds the seed of an nkey", set: setNKey},
		{
			flag: "trusted-keys", env: "FORGE_TRUSTED_KEYS", value: "FILE", usage: "keys by which senders are proven, instead of allowed_signers beside --nkey",
			set: setFile(func(c *Config) *string { return &c.Runner.TrustedKeys }),
		},
		{flag: "gateway", env: "FORGE_GATEWAY", value: "FILE", usage: "settings of the gateway", set: setFile(func(c *Config) *string { return &c.Gateway })},
		{flag: "tls-ca", env: "FORGE_TLS_CA", value: "FILE", usage: "authorities for the NATS servers, instead of the system's", set: setTLSCA},
		{flag: "tls-cert", env: "FORGE_TLS_CERT", value: "FILE", usage: "certificate to show them", set: setFile(func(c *Config) *string { return &c.TLS.Cert })},
		{flag: "tls-key", env: "FORGE_TLS_KEY", value: "FILE", usage: "key of that certificate", set: setFile(func(c *Config) *string { return &c.TLS.Key })},
		{
			flag: "credentials-dir", env: "FORGE_CREDENTIALS_DIR", value: "DIR", usage: "a file for each key of agents, read again for each use",
			set: setCredentialsDir,
		},
		{flag: "replica", env: "FORGE_REPLICA", value: "ID", usage: "name of this copy, the same after a restart", initial: hostReplica, set: setReplica},
		{flag: "project", env: "FORGE_PROJECTS", value: "NAME=URL", usage: "repository to work on; may be repeated", set: addProject, many: true},
		{
			flag: "project-group", env: "FORGE_PROJECT_GROUPS", value: "NAME=GROUP", usage: "replicas that serve a project; may be repeated",
			set: setProjectGroup, many: true,
		},
		{flag: "group", env: "FORGE_GROUP", value: "GROUP", usage: "group of this copy; without it, it serves the projects without one", set: setGroup},
		{flag: "state-dir", env: "FORGE_STATE_DIR", value: "DIR", usage: "clones, checkouts, logs", initial: stateDir, set: setStateDir},
		{flag: "clone", env: "FORGE_CLONE", value: "WHEN", usage: "clone projects at the start, or each at its first-use", initial: fixed("start"), set: setClone},
		{flag: "listen", env: "FORGE_LISTEN", value: "HOST:PORT", usage: "serve /livez, /readyz and /metrics there; empty: nowhere", set: setListen},
		{flag: "workers", env: "FORGE_WORKERS", value: "N", usage: "attempts at the same time", initial: fixed("4"), set: setWorkers},
		{
			flag: "sandbox", env: "FORGE_SANDBOX", value: "MODE", usage: "project: needed for what others wrote; require: always; unconfined: never",
			initial: fixed("project"), set: setSandbox,
		},
		{flag: "command-memory", env: demand.MemoryVariable, value: "SIZE", usage: "memory of each agent or command, such as 8GiB", set: setMemory},
		{flag: "command-disk", env: demand.DiskVariable, value: "SIZE", usage: "what each agent or command may write, such as 20GiB", set: setDisk},
		{
			flag: "pod-template", env: "FORGE_POD_TEMPLATE", value: "FILE", usage: "run agents and commands in pods made of this one",
			set: setFile(func(c *Config) *string { return &c.Commands.PodTemplate }),
		},
		{flag: "pod-image", env: "FORGE_POD_IMAGE", value: "IMAGE", usage: "image of the template's command, instead of its own", set: setPodImage},
		{flag: "stream-replicas", env: "FORGE_STREAM_REPLICAS", value: "N", usage: "servers that keep each stream: 3 on a cluster", set: setStreamReplicas},
		{flag: "drain-timeout", env: "FORGE_DRAIN_TIMEOUT", value: "DURATION", usage: "for running work at the end", initial: fixed("25s"), set: setDrainTimeout},
		{
			flag: "notifications", env: "FORGE_NOTIFICATIONS", value: "FILE", usage: "the targets of the runner's notifications",
			set: setFile(func(c *Config) *string { return &c.Runner.Notifications }),
		},
		{
			flag: "quota-project", env: "FORGE_QUOTA_PROJECT", value: "N", usage: "open intents of a project, above which the runner refuses more",
			initial: fixed(strconv.Itoa(quota.DefaultProject)), set: setCount(func(c *Config) *int { return &c.Runner.Quotas.Project }),
		},
		{
			flag: "quota-system", env: "FORGE_QUOTA_SYSTEM", value: "N", usage: "open intents that one system submitted, above which the runner refuses more",
			initial: fixed(strconv.Itoa(quota.DefaultSystem)), set: setCount(func(c *Config) *int { return &c.Runner.Quotas.System }),
		},
		{
			flag: "quota-calls", env: "FORGE_QUOTA_CALLS", value: "N", usage: "calls of a project at the workers, above which the runner holds more back",
			set: setCount(func(c *Config) *int { return &c.Runner.Quotas.Calls }),
		},
		{
			flag: "rules", env: "FORGE_RULES", value: "N", usage: "version of the rules that the runner does not go beyond",
			set: setCount(func(c *Config) *int { return &c.Runner.Rules }),
		},
		{flag: "log-level", env: "FORGE_LOG_LEVEL", value: "LEVEL", usage: "debug, info, warn or error", initial: fixed("info"), set: setLogLevel},
		{flag: "log-format", env: "FORGE_LOG_FORMAT", value: "FORMAT", usage: "json or text", initial: fixed("json"), set: setLogFormat},
	}
}

// fixed returns a constant default.
func fixed(s string) func(defaults) string { return func(defaults) string { return s } }

// hostReplica derives an id from the host's name, which in Kubernetes is the pod's.
func hostReplica(defaults) string {
	name, err := os.Hostname()
	if err != nil {
		return ""
	}
	return forge.Slug(name)
}

// stateDir returns a directory of this replica's own, so that copies that share a
// home directory stay apart.
func stateDir(d defaults) string {
	base := d.getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(base) {
		home := d.getenv("HOME")
		if !filepath.IsAbs(home) {
			return ""
		}
		base = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(base, "pfl-forge", d.service, string(d.replica))
}

// parsed returns a setter for what a constructor makes of the text.
func parsed[T any](parse func(string) (T, error), field func(*Config) *T) func(*Config, string) error {
	return func(c *Config, s string) (err error) {
		*field(c), err = parse(s)
		return err
	}
}

// setFile returns a setter for the path of a file that must exist.
func setFile(field func(*Config) *string) func(*Config, string) error {
	return func(c *Config, s string) error {
		if err := checkSecretFile(s); err != nil {
			return err
		}
		*field(c) = s
		return nil
	}
}

// setTokenFile also reads the token once, to report errors at the start.
func setTokenFile(c *Config, s string) error {
	c.TokenFile = s
	_, err := readToken(s)
	return err
}

// setNKey also reads the seed once, to report errors at the start.
func setNKey(c *Config, s string) error {
	if err := checkSecretFile(s); err != nil {
		return err
	}
	c.NKey = s
	_, err := bus.ReadSeed(s)
	return err
}

// setTLSCA also reads the authorities once.
func setTLSCA(c *Config, s string) error {
	if err := checkSecretFile(s); err != nil {
		return err
	}
	c.TLS.CA = s
	return bus.TLS{CA: s}.Check()
}

// setCredentialsDir accepts a directory; what is in it may change, and is read when it is used.
func setCredentialsDir(c *Config, s string) (err error) {
	if c.CredentialsDir, err = filepath.Abs(s); err != nil {
		return err
	}
	return c.credentials().Check()
}

// addProject adds a repository, and refuses an id that was given before.
func addProject(c *Config, s string) error {
	p, err := parseProject(s)
	if err != nil {
		return err
	}
	for _, other := range c.Projects {
		if other.ID == p.ID {
			return fmt.Errorf("project %q is given twice", p.ID)
		}
	}
	c.Projects = append(c.Projects, p)
	return nil
}

// setProjectGroup assigns a project to a group. The setting comes after that of the projects.
func setProjectGroup(c *Config, s string) error {
	name, group, ok := strings.Cut(s, "=")
	if !ok {
		return errors.New("want NAME=GROUP, such as shop=large")
	}
	for i := range c.Projects {
		p := &c.Projects[i]
		if string(p.ID) != name {
			continue
		}
		if p.Group != "" {
			return fmt.Errorf("project %q is given two groups", name)
		}
		var err error
		p.Group, err = subjects.ParseGroup(group)
		return err
	}
	return fmt.Errorf("%q is not one of the projects of --project (FORGE_PROJECTS)", name)
}

func setStateDir(c *Config, s string) (err error) {
	if s == "" || strings.ContainsRune(s, 0) {
		return errors.New("is needed, because there is no home directory to default to")
	}
	c.StateDir, err = filepath.Abs(s)
	return err
}

// setClone maps the moments to CloneAtFirstUse.
func setClone(c *Config, s string) error {
	if s != "start" && s != "first-use" {
		return fmt.Errorf("%q is not start or first-use", s)
	}
	c.CloneAtFirstUse = s == "first-use"
	return nil
}

// setListen sets the address of health and metrics. The host may be left out, the port not.
func setListen(c *Config, s string) error {
	_, port, err := net.SplitHostPort(s)
	if err != nil {
		return fmt.Errorf("%q is not HOST:PORT, such as 127.0.0.1:8080 or :8080", s)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return fmt.Errorf("port %q is not a number from 0 to 65535", port)
	}
	c.Listen = s
	return nil
}

func setWorkers(c *Config, s string) error {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > maxWorkers {
		return fmt.Errorf("%q is not a number from 1 to %d", s, maxWorkers)
	}
	c.Workers = n
	return nil
}

// setCount returns a setter for a number of at least 1.
func setCount(field func(*Config) *int) func(*Config, string) error {
	return func(c *Config, s string) error {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			return fmt.Errorf("%q is not a number from 1", s)
		}
		*field(c) = n
		return nil
	}
}

func setStreamReplicas(c *Config, s string) error {
	n, err := strconv.Atoi(s)
	if err != nil || n != 1 && n != 3 && n != 5 {
		return fmt.Errorf("%q is not 1, 3 or 5", s)
	}
	c.Replicas = n
	return nil
}

func setDrainTimeout(c *Config, s string) error {
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 || d > 24*time.Hour {
		return fmt.Errorf("%q is not a duration from 0s to 24h, such as 30s", s)
	}
	c.DrainTimeout = d
	return nil
}

// setLogLevel sets the least level of log lines that are written.
func setLogLevel(c *Config, s string) error {
	levels := map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}
	level, ok := levels[strings.ToLower(s)]
	if !ok {
		return fmt.Errorf("%q is not debug, info, warn or error", s)
	}
	c.Log.Level = level
	return nil
}

func setPodImage(c *Config, s string) error {
	if strings.ContainsFunc(s, unicode.IsSpace) {
		return fmt.Errorf("%q is no image, such as registry.example.com/agent:v1", s)
	}
	c.Commands.PodImage = s
	return nil
}

func setLogFormat(c *Config, s string) error {
	if s != "json" && s != "text" {
		return fmt.Errorf("%q is not json or text", s)
	}
	c.Log.Format = s
	return nil
}
