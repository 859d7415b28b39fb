package notify

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/internal/strictyaml"
)

// Kind is what a notification is about.
type Kind string

// The kinds: a closed set.
const (
	KindWaiting Kind = "waiting" // a person has to do something
	KindBudget  Kind = "budget"  // there is no money to go on with
	KindFailed  Kind = "failed"  // an intent ended blocked or error
	KindDone    Kind = "done"    // an intent is done
)

// Kinds lists the kinds.
func Kinds() []Kind { return []Kind{KindWaiting, KindBudget, KindFailed, KindDone} }

// kindOf returns the kind of a change; empty if nobody is told of it.
func kindOf(t *bus.Told) Kind {
	switch t.What {
	case bus.WhatWaiting:
		switch t.Waiting {
		case forge.WaitingBudget:
			return KindBudget
		case forge.WaitingPaused: // a person knows that
			return ""
		default:
			return KindWaiting
		}
	case bus.WhatBlocked, bus.WhatError:
		return KindFailed
	case bus.WhatDone:
		return KindDone
	default:
		return ""
	}
}

// Target is one place to tell. Exactly one of Command, Webhook and WebhookFile is set.
type Target struct {
	Name        string            `yaml:"-"`
	On          []Kind            `yaml:"on"`           // empty: every kind
	Projects    []forge.ProjectID `yaml:"projects"`     // empty: every project
	Command     []string          `yaml:"command"`      // a program and its arguments
	Webhook     string            `yaml:"webhook"`      // a URL
	WebhookFile string            `yaml:"webhook_file"` // a file with the URL, where that is a secret
	SecretFile  string            `yaml:"secret_file"`  // a file with the key that signs what the webhook gets
	Most        int               `yaml:"most"`         // notifications in a window; what is more becomes one
	Window      time.Duration     `yaml:"window"`
}

// Config says whom to tell.
type Config struct {
	Targets []Target // by name
}

// Defaults and bounds of a target.
const (
	defaultMost   = 10
	defaultWindow = time.Minute
	maxMost       = 1000
	maxWindow     = 24 * time.Hour
	maxTargets    = 20
)

// Load reads a file of notifications. Nobody but its owner may be able to write to it,
// because it says what to run. What is wrong in it is a list of errors that print as
// "file:line: field: reason", one per line.
func Load(path string) (*Config, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, fmt.Errorf("notifications: %w", err)
	case !info.Mode().IsRegular() || info.Size() > strictyaml.DefaultMaxBytes:
		return nil, fmt.Errorf("notifications: %s is not a regular file of at most %d bytes", path, strictyaml.DefaultMaxBytes)
	case info.Mode().Perm()&0o022 != 0:
		return nil, fmt.Errorf("notifications: %s says what to run, and others than its owner may write to it: chmod go-w %s", path, path)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("notifications: %w", err)
	}
	return Parse(data, filepath.Base(path))
}

// UserFile returns where a person's own file of notifications is, if there is one, and
// otherwise nothing. It is not in the repository, which must not be able to run commands.
func UserFile(getenv func(string) string) string {
	if path := getenv("FORGE_NOTIFICATIONS"); path != "" {
		return path
	}
	home := getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(home) {
		home = filepath.Join(getenv("HOME"), ".config")
	}
	path := filepath.Join(home, "pfl-forge", "notifications.yaml")
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) || !filepath.IsAbs(path) {
		return ""
	}
	return path
}

// Parse is Load for what is in the file.
func Parse(data []byte, name string) (*Config, error) {
	var doc struct {
		Notifications map[string]Target `yaml:"notifications"`
	}
	pos, err := strictyaml.Decode(data, &doc, strictyaml.Options{File: name})
	if err != nil {
		return nil, err
	}
	c := checker{pos: pos}
	cfg := &Config{}
	for target, t := range doc.Notifications {
		t.Name = target
		c.target("notifications."+target, &t)
		cfg.Targets = append(cfg.Targets, t)
	}
	if len(cfg.Targets) > maxTargets {
		c.fail("notifications", "has %d entries; at most %d are allowed", len(cfg.Targets), maxTargets)
	}
	if len(c.errs) > 0 {
		c.errs.Sort()
		return nil, c.errs
	}
	slices.SortFunc(cfg.Targets, func(a, b Target) int { return strings.Compare(a.Name, b.Name) })
	return cfg, nil
}

type checker struct {
	pos  *strictyaml.Positions
	errs strictyaml.Errors
}

func (c *checker) fail(field, format string, args ...any) {
	c.errs = append(c.errs, c.pos.Errorf(field, format, args...))
}

func (c *checker) target(at string, t *Target) {
	if _, err := forge.ParseReplicaID(follower(t.Name)); err != nil {
		c.fail(at, "is no name: only a-z, 0-9 and - are allowed, at most %d of them", forge.MaxIDLength-len(follower("")))
	}
	for i, kind := range t.On {
		if !slices.Contains(Kinds(), kind) {
			c.fail(fmt.Sprintf("%s.on[%d]", at, i), "is %q; it can be waiting, budget, failed or done", kind)
		}
	}
	for i, p := range t.Projects {
		if _, err := forge.ParseProjectID(string(p)); err != nil {
			c.fail(fmt.Sprintf("%s.projects[%d]", at, i), "%v", err)
		}
	}
	ways := 0
	for _, given := range []bool{len(t.Command) > 0, t.Webhook != "", t.WebhookFile != ""} {
		if given {
			ways++
		}
	}
	if ways != 1 {
		c.fail(at, "needs one of command, webhook and webhook_file")
	}
	c.way(at, t)
	if t.Most == 0 {
		t.Most = defaultMost
	}
	if t.Most < 1 || t.Most > maxMost {
		c.fail(at+".most", "is %d; it can be 1 to %d", t.Most, maxMost)
	}
	if t.Window == 0 {
		t.Window = defaultWindow
	}
	if t.Window < time.Second || t.Window > maxWindow {
		c.fail(at+".window", "is %s; it can be 1s to %s", t.Window, maxWindow)
	}
}

func (c *checker) way(at string, t *Target) {
	if len(t.Command) > 0 && (t.Command[0] == "" || strings.Contains(t.Command[0], "/") && !filepath.IsAbs(t.Command[0])) {
		c.fail(at+".command", "must begin with a program in PATH, or with an absolute path")
	}
	if t.Webhook != "" {
		if err := checkURL(t.Webhook); err != nil {
			c.fail(at+".webhook", "%v", err)
		}
	}
	for field, path := range map[string]string{"webhook_file": t.WebhookFile, "secret_file": t.SecretFile} {
		if path == "" {
			continue
		}
		if text, err := readSecret(path); err != nil {
			c.fail(at+"."+field, "%v", err)
		} else if field == "webhook_file" {
			if err := checkURL(text); err != nil {
				c.fail(at+"."+field, "what is in it %v", err)
			}
		}
	}
	if t.SecretFile != "" && len(t.Command) > 0 {
		c.fail(at+".secret_file", "is for webhooks; a command reads what it needs itself")
	}
}

// checkURL tells nothing of the URL, which may be a secret.
func checkURL(s string) error {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return errors.New("is not a URL that begins with https:// or http://")
	}
	return nil
}

const maxSecret = 64 << 10

// readSecret returns what is in a file, without white space around it.
func readSecret(path string) (string, error) {
	info, err := os.Stat(path)
	switch {
	case !filepath.IsAbs(path):
		return "", fmt.Errorf("%s is not an absolute path", path)
	case err != nil:
		return "", err
	case !info.Mode().IsRegular() || info.Size() > maxSecret:
		return "", fmt.Errorf("%s is not a regular file of at most %d bytes", path, maxSecret)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	text := strings.TrimSpace(string(data))
	if text == "" {
		return "", fmt.Errorf("%s is empty", path)
	}
	return text, nil
}

// follower is the name under which a target follows the changes.
func follower(target string) string { return "notify-" + target }
