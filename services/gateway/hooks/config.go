package hooks

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/strictyaml"
	"github.com/pfl-forge/pfl-forge/services/gateway/tokens"
)

// Kind says how a hook's sender signs.
type Kind string

// The kinds of senders.
const (
	// GitHub signs the body: X-Hub-Signature-256.
	GitHub Kind = "github"
	// Gitea is Forgejo, too. It signs as GitHub does.
	Gitea Kind = "gitea"
	// GitLab sends a secret token itself, X-Gitlab-Token, or signs with a
	// signing token: webhook-signature.
	GitLab Kind = "gitlab"
	// Slack signs a time and the body: X-Slack-Signature.
	Slack Kind = "slack"
	// Standard is anything that follows the Standard Webhooks: webhook-signature.
	Standard Kind = "standard"
	// CloudEvents are of version 1.0 over HTTP, binary or structured, with the
	// secret as a bearer token.
	CloudEvents Kind = "cloudevents"
)

var kinds = []Kind{GitHub, Gitea, GitLab, Slack, Standard, CloudEvents}

// Hook is one door for one sender.
type Hook struct {
	// Name is the last part of its path, an id as a project's.
	Name string `yaml:"name"`
	// Kind says how its sender signs.
	Kind Kind `yaml:"kind"`
	// Secrets are the paths of files with the secret, one or, while it is
	// changed, two. They are read for each request.
	Secrets []string `yaml:"secrets"`
	// PerMinute bounds the deliveries that are stored; 0 for 1,200.
	PerMinute int `yaml:"per_minute"`
	// Entry is the entry of the file of tokens as which a system acts that asks
	// for changes here. It is for the kinds standard and cloudevents, and needed
	// there: what forges and chats send is read by those whose hooks they are.
	Entry string `yaml:"entry"`
}

// Submitted is the name under which it is stored that a delivery was submitted.
// No hook has it: no one outside may store anything there.
const Submitted = "submitted"

const (
	// leastSecret is the length of the shortest secret that is taken, in bytes.
	// An empty one would be known to everybody.
	leastSecret = 16
	// maxSecrets is how many are good at once.
	maxSecrets     = 2
	maxHooks       = 100
	maxPerMinute   = 1_000_000
	usualPerMinute = 1200
)

// Parse reads the operator's file of hooks. Every error is a strictyaml.Errors
// with file, line and field.
func Parse(name string, data []byte) ([]Hook, error) {
	var f struct {
		Hooks []Hook `yaml:"hooks"`
	}
	places, err := strictyaml.Decode(data, &f, strictyaml.Options{File: name})
	if err != nil {
		return nil, err
	}
	var errs strictyaml.Errors
	if len(f.Hooks) > maxHooks {
		errs = append(errs, places.Errorf("hooks", "has %d hooks; at most %d are allowed", len(f.Hooks), maxHooks))
	}
	seen := map[string]bool{}
	for i := range f.Hooks {
		wrong := func(field, format string, args ...any) {
			errs = append(errs, places.Errorf(fmt.Sprintf("hooks[%d].%s", i, field), format, args...))
		}
		h := &f.Hooks[i]
		h.check(wrong)
		if seen[h.Name] {
			wrong("name", "is there twice")
		}
		seen[h.Name] = true
		if h.PerMinute == 0 {
			h.PerMinute = usualPerMinute
		}
	}
	if len(errs) > 0 {
		errs.Sort()
		return nil, errs
	}
	return f.Hooks, nil
}

// check reports all that is wrong with a hook by itself.
func (h *Hook) check(wrong func(field, format string, args ...any)) {
	if _, err := forge.ParseProjectID(h.Name); err != nil {
		wrong("name", "%.70q has to be of small letters, digits and hyphens", h.Name)
	} else if h.Name == Submitted {
		wrong("name", "%q is a name of our own", h.Name)
	}
	if !slices.Contains(kinds, h.Kind) {
		wrong("kind", "is %q; it can be one of %v", h.Kind, kinds)
	}
	if n := len(h.Secrets); n == 0 || n > maxSecrets {
		wrong("secrets", "has %d files; it needs one, or two while the secret is changed", n)
	}
	for i, path := range h.Secrets {
		if !filepath.IsAbs(path) {
			wrong(fmt.Sprintf("secrets[%d]", i), "has to be an absolute path")
		}
	}
	switch {
	case h.isOfSystems() && h.Entry == "":
		wrong("entry", "is empty: name the entry of the file of tokens as which the system acts that sends here")
	case !h.isOfSystems() && h.Entry != "":
		wrong("entry", "is for the kinds %s and %s", Standard, CloudEvents)
	}
	if h.PerMinute < 0 || h.PerMinute > maxPerMinute {
		wrong("per_minute", "has to be between 0 and %d", maxPerMinute)
	}
}

// isOfSystems reports whether what comes is asked for by a system, and no hint of a forge or chat.
func (h *Hook) isOfSystems() bool { return h.Kind == Standard || h.Kind == CloudEvents }

// CheckEntries returns an error for each entry of hooks, by the field in their
// file, that no system has in the file of tokens. One that has expired is no
// reason not to start: it is as one that has lost every role.
func CheckEntries(list []Hook, book *tokens.Book) error {
	var wrong []error
	for i, h := range list {
		if h.Entry == "" {
			continue
		}
		switch t, err := book.Named(h.Entry); {
		case errors.Is(err, tokens.ErrExpired):
		case err != nil:
			wrong = append(wrong, fmt.Errorf("hooks[%d].entry: there is no %.70q in the file of tokens", i, h.Entry))
		case t.System == "":
			wrong = append(wrong, fmt.Errorf("hooks[%d].entry: %s is that of a person, and what comes by a hook is a system's", i, h.Entry))
		}
	}
	return errors.Join(wrong...)
}

// secrets returns those that can be read now. One of two may be missing, because a
// change of the secret has a beginning and an end; without any the error says why.
func (h *Hook) secrets() (list [][]byte, err error) {
	var errs []error
	for _, path := range h.Secrets {
		text, err := os.ReadFile(path)
		secret := bytes.TrimRight(text, "\r\n")
		switch {
		case errors.Is(err, fs.ErrNotExist):
			errs = append(errs, fmt.Errorf("the secret of the hook %s is missing: %w", h.Name, err))
		case err != nil:
			errs = append(errs, fmt.Errorf("the secret of the hook %s cannot be read: %w", h.Name, err))
		case len(secret) < leastSecret:
			errs = append(errs, fmt.Errorf("the secret in %s has %d bytes; it needs at least %d", path, len(secret), leastSecret))
		default:
			list = append(list, secret)
		}
	}
	if len(list) == 0 {
		return nil, errors.Join(errs...)
	}
	return list, nil
}
