package service

import (
	"strings"

	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/internal/credentials"
	"github.com/pfl-forge/pfl-forge/internal/environ"
	"github.com/pfl-forge/pfl-forge/internal/redact"
)

// Credentials returns the variables that agents log in with, as they are now. Whatever the
// files hold is taken out of all that leaves the service's workers from then on.
func (e *Env) Credentials() credentials.Variables {
	if e.Config.CredentialsDir == "" {
		return credentials.Variables{}
	}
	v := e.Config.credentials().Read()
	var secrets []string
	for _, value := range v.Values() {
		if strings.Contains(value, "://") { // an address
			secrets = append(secrets, redact.URL(value)...)
			continue
		}
		secrets = append(secrets, value)
	}
	e.secrets().Know(secrets...)
	return v
}

// secrets returns the Redactor of the service, which knows the secrets in its settings and
// environment, and learns those of its credentials as they are read.
func (e *Env) secrets() *redact.Redactor {
	e.redactOnce.Do(func() { e.redactor = e.openRedactor() })
	return e.redactor
}

// openRedactor returns a Redactor for the secrets in the service's settings and
// environment.
func (e *Env) openRedactor() *redact.Redactor {
	secrets := append(redact.Environ(environ.All()), redact.URL(e.Config.Server)...)
	for _, p := range e.Config.Projects {
		secrets = append(secrets, redact.URL(p.URL)...)
	}
	if token, err := e.Config.Token(); err == nil { // it was read before
		secrets = append(secrets, token)
	}
	if e.Config.NKey != "" {
		if seed, err := bus.ReadSeed(e.Config.NKey); err == nil { // one that replaces it is known by its form
			secrets = append(secrets, string(seed))
		}
	}
	return redact.New(secrets...)
}

// redactor returns the worker's Redactor, or one that only knows the typical forms of
// secrets.
func (r *workerRun) redactor() *redact.Redactor {
	if r.Secrets != nil {
		return r.Secrets
	}
	return &shapes
}

// shapes knows no secrets, only their typical forms. It is never changed.
var shapes redact.Redactor
