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
	"github.com/pfl-forge/pfl-forge/bus/changes"
	"github.com/pfl-forge/pfl-forge/internal/strictyaml"
)

// Kind says what a notification is about. Targets choose kinds, and commands and webhooks
// read them.
type Kind string

// The kinds. No others exist.
const (
	// KindWaiting means that an intent waits for a person, who has to approve,
	// to answer, or to mend a conflict.
	KindWaiting Kind = "waiting"
	// KindBudget means that an intent waits because a budget is used up.
	KindBudget Kind = "budget"
	// KindFailed means that an intent ended as blocked or error.
	KindFailed Kind = "failed"
	// KindDone means that an intent is done.
	KindDone Kind = "done"
)

// Kinds returns all kinds.
func Kinds() []Kind { return []Kind{KindWaiting, KindBudget, KindFailed, KindDone} }

// kindOf returns the kind of a change; empty for a change that no target is
// notified of.
func kindOf(t *changes.Delivered) Kind {
	switch t.Kind {
	case changes.Waiting:
		return KindOfWait(t.Waiting, t.Reason)
	case changes.Blocked, changes.Error:
		return KindFailed
	case changes.Done:
		return KindDone
	default:
		return ""
	}
}

// KindOfWait returns the kind of a wait with its reason; empty for a wait that
// people are not told of, and for none.
func KindOfWait(w forge.Waiting, reason string) Kind {
	switch {
	case w == "":
		return ""
	case w == forge.WaitingPaused && !forge.Outside(reason):
		// A person has paused it, and knows. Where an account refuses calls, no
		// person did, and one intent says so for all that wait.
		return ""
	case w == forge.WaitingBudget:
		return KindBudget
	default:
		return KindWaiting
	}
}

// Target is one recipient of notifications. Exactly one of Command, Webhook and WebhookFile
// is set.
type Target struct {
	// Name is the target's key in the file. It becomes part of the follower's name.
	Name string `yaml:"-"`
	// On lists the kinds of changes to notify of. Empty means every kind.
	On []Kind `yaml:"on"`
	// Projects lists the projects to notify of. Empty means every project.
	Projects []forge.ProjectID `yaml:"projects"`
	// Command is a program in PATH or with an absolute path, and its arguments. It gets the
	// CloudEvent on its standard input and as FORGE_... variables.
	Command []string `yaml:"command"`
	// Webhook is a URL that the CloudEvent is sent to by POST.
	Webhook string `yaml:"webhook"`
	// WebhookFile is the absolute path of a file with the URL, where the URL is a secret. It
	// is read anew for each notification.
	WebhookFile string `yaml:"webhook_file"`
	// SecretFile is the absolute path of a file with the key that signs what the webhook
	// gets. It is read anew for each notification. Empty leaves out the signature.
	SecretFile string `yaml:"secret_file"`
	// Most bounds the notifications in one window; all further changes become one digest.
	// Load sets 10 if the file has none.
	Most int `yaml:"most"`
	// Window is the length of a window. Load sets one minute if the file has none.
	Window time.Duration `yaml:"window"`
}

// Config is a file of notifications.
type Config struct {
	// Targets are sorted by name.
	Targets []Target
}

// Defaults and bounds of a target.
const (
	defaultMost   = 10
	defaultWindow = time.Minute
	maxMost       = 1000
	maxWindow     = 24 * time.Hour
	maxTargets    = 20
)

// Load reads a file of notifications and fills in the defaults. It refuses a file that others
// than its owner may write to, because the file says what to run. What is wrong in it is
// returned at once, as errors that print as "file:line: field: reason", one per line.
func Load(path string) (*Config, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, fmt.Errorf("notifications: %w", err)
	case !info.Mode().IsRegular() || info.Size() > strictyaml.DefaultMaxBytes:
		return nil, fmt.Errorf("notifications: %s is not a regular file of at most %d bytes", path, strictyaml.DefaultMaxBytes)
	case info.Mode().Perm()&0o022 != 0:
		return nil, fmt.Errorf("notifications: %s names a command to run, and other users can write to it: chmod go-w %s", path, path)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("notifications: %w", err)
	}
	return Parse(data, filepath.Base(path))
}

// UserFile returns the path of a person's own file of notifications: $FORGE_NOTIFICATIONS,
// or pfl-forge/notifications.yaml in the user's configuration directory. It is empty if
// there is none. A file in the repository is not considered: a repository must not be able
// to run commands.
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

// Parse is [Load] for the content of a file. name stands for the file in errors.
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

// checker checks the targets of a file and collects the errors, each with its
// line.
type checker struct {
	pos  *strictyaml.Positions
	errs strictyaml.Errors
}

// fail notes an error about the value of a field.
func (c *checker) fail(field, format string, args ...any) {
	c.errs = append(c.errs, c.pos.Errorf(field, format, args...))
}

// target checks a target and fills in its defaults. at is its path in the file.
func (c *checker) target(at string, t *Target) {
	if _, err := forge.ParseReplicaID(followerName(t.Name)); err != nil {
		c.fail(at, "is not a valid name: only a-z, 0-9 and - are allowed, at most %d of them", forge.MaxIDLength-len(followerName("")))
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
	c.destination(at, t)
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

// destination checks the command or webhook of a target, and the files that it reads.
func (c *checker) destination(at string, t *Target) {
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
		c.fail(at+".secret_file", "is for webhooks; a command reads its own secrets")
	}
}

// checkURL returns an error for a text that is no URL of a webhook. The error does not
// repeat the text, which may be a secret.
func checkURL(s string) error {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return errors.New("is not a URL that begins with https:// or http://")
	}
	return nil
}

// maxSecret bounds a file with a URL or a key, in bytes.
const maxSecret = 64 << 10

// readSecret returns the content of a file, without white space around it. The path must be
// absolute, so that it does not depend on where the service was started.
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

// followerName returns the name under which a target follows the published changes.
func followerName(target string) string { return "notify-" + target }
