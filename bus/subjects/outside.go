package subjects

import (
	"fmt"
	"strings"

	forge "github.com/pfl-forge/pfl-forge"
)

// The subjects in this file are those on which other systems and people are told what
// happens, and ask what is answered at once.

// Change is where a change of an intent is told to everybody.
func Change(k forge.Key, kind string) (string, error) {
	return "forge.event." + string(k.Project) + "." + string(k.Intent) + "." + kind, CheckIntent(k)
}

// Refusal is where a system is told what was refused; without a name, those that
// said none.
func Refusal(p forge.ProjectID, system string) (string, error) {
	name := None
	if system != "" && len(system) <= maxSender {
		name = escape(system)
	}
	_, err := forge.ParseProjectID(string(p))
	return "forge.refusal." + string(p) + "." + name, err
}

// Changes returns the filter for a kind of changes, or all, in a project, or in all.
func Changes(p forge.ProjectID, kind string) (string, error) {
	t, err := projectToken(p)
	if kind == "" {
		kind = "*"
	}
	return "forge.event." + t + ".*." + kind, err
}

// The endpoints that answer at once, of every project.
const (
	APISubmit     = "forge.api.*.submit"
	APISubmitFrom = "forge.api.*.from.*.submit"
	APIList       = "forge.api.*.list"
	APIShow       = "forge.api.*.show"
	APIServices   = "forge.api.*." + verbServices
	APIClean      = "forge.api.*.by.*." + VerbClean
	VerbClean     = "clean"
	verbServices  = "services"
)

// ParseAPI returns whom a request comes from: an unnamed sender, a system, or,
// of what only people may ask for, a person.
func ParseAPI(s string) (Sender, error) {
	rest, ok := strings.CutPrefix(s, "forge.api.")
	if !ok {
		return Sender{}, fmt.Errorf("%q is no subject of a request", s)
	}
	from, err := ParseIntent("forge.intent." + rest)
	if err == nil && from.Person != (from.Verb == VerbClean) {
		err = fmt.Errorf("%q is no subject of a request", s)
	}
	return from, err
}

// Clean is where a person asks for what intents left to be removed. Only that
// person is to be allowed to publish there.
func Clean(p forge.ProjectID, person string) (string, error) {
	if len(person) > maxSender {
		return "", fmt.Errorf("a person's name has %d bytes; at most %d are allowed", len(person), maxSender)
	}
	_, err := forge.ParseProjectID(string(p))
	return "forge.api." + string(p) + ".by." + escape(person) + "." + VerbClean, err
}

// Services is where runners are asked which services run, and which projects they serve.
func Services(p forge.ProjectID) (string, error) {
	_, err := forge.ParseProjectID(string(p))
	return "forge.api." + string(p) + "." + verbServices, err
}

// Cleaned is where replicas are told whose commits are gone from the origin.
func Cleaned(p forge.ProjectID) (string, error) {
	_, err := forge.ParseProjectID(string(p))
	return "forge.cleaned." + string(p), err
}

// EveryCleaned matches that of all projects.
const EveryCleaned = "forge.cleaned.*"

// Submission is where systems ask for intents.
func Submission(p forge.ProjectID) (string, error) {
	t, err := forge.ParseProjectID(string(p))
	return "forge.intent." + string(t) + ".submit", err
}
