package service

import (
	"reflect"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/internal/credentials"
	"github.com/pfl-forge/pfl-forge/internal/environ"
	"github.com/pfl-forge/pfl-forge/internal/redact"
	"github.com/pfl-forge/pfl-forge/proof"
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

// withoutSecrets returns a result with every text redacted: it goes into the journal,
// and from there into files and prompts.
func withoutSecrets(r *redact.Redactor, res forge.Result) forge.Result {
	texts(reflect.ValueOf(&res).Elem(), r.Text)
	return res
}

// texts replaces every string in a value, recursively.
func texts(v reflect.Value, by func(string) string) {
	// To a search for secrets the payload of an envelope looks like one, and a text with
	// something taken out of it would not be the one that was signed.
	if v.Type() == reflect.TypeFor[forge.Envelope]() {
		if !tellable(forge.Envelope(v.String()), by) {
			v.SetString("")
		}
		return
	}
	switch v.Kind() {
	case reflect.String:
		if s := by(v.String()); s != v.String() {
			v.SetString(s)
		}
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			texts(v.Elem(), by)
		}
	case reflect.Slice:
		for i := range v.Len() {
			texts(v.Index(i), by)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			value := reflect.New(v.Type().Elem()).Elem()
			value.Set(v.MapIndex(key))
			texts(value, by)
			v.SetMapIndex(key, value)
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		for _, field := range v.Fields() {
			texts(field, by)
		}
	default:
	}
}

// tellable reports whether a signed statement is one in which by replaces nothing. What is in an envelope is encoded, and a
// text without a part of it would not be what was signed, so one with a secret is not told at all.
func tellable(e forge.Envelope, by func(string) string) bool {
	s, err := proof.Unseal(e)
	return err == nil && by(string(s.Payload)) == string(s.Payload)
}
