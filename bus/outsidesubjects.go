package bus

import (
	"fmt"
	"strings"

	forge "github.com/pfl-forge/pfl-forge"
)

// The subjects in this file are those on which other systems and people are told what
// happens, and ask what is answered at once.

// publishedSubject is where a change of an intent is told to everybody.
func publishedSubject(k forge.Key, what ChangeKind) (string, error) {
	return "forge.event." + string(k.Project) + "." + string(k.Intent) + "." + string(what), checkIntent(k)
}

// refusalSubject is where a system is told what was refused; without a name, those that
// said none.
func refusalSubject(p forge.ProjectID, system string) (string, error) {
	name := none
	if system != "" && len(system) <= maxSender {
		name = escape(system)
	}
	_, err := forge.ParseProjectID(string(p))
	return "forge.refusal." + string(p) + "." + name, err
}

// publishedOf matches what is told of a project, or of all if it is empty.
func publishedOf(p forge.ProjectID, what ChangeKind) (string, error) {
	t, err := projectToken(p)
	if what == "" {
		what = "*"
	}
	return "forge.event." + t + ".*." + string(what), err
}

// The endpoints that answer at once, of every project.
const (
	apiSubmit     = "forge.api.*.submit"
	apiSubmitFrom = "forge.api.*.from.*.submit"
	apiList       = "forge.api.*.list"
	apiShow       = "forge.api.*.show"
	apiClean      = "forge.api.*.by.*." + verbClean
	verbClean     = "clean"
)

// parseAPISubject returns whom a request comes from: nobody that is named, a system, or,
// of what only people may ask for, a person.
func parseAPISubject(s string) (sender, error) {
	rest, ok := strings.CutPrefix(s, "forge.api.")
	if !ok {
		return sender{}, fmt.Errorf("%q is no subject of a request", s)
	}
	from, err := parseIntentSubject("forge.intent." + rest)
	if err == nil && from.person != (from.verb == verbClean) {
		err = fmt.Errorf("%q is no subject of a request", s)
	}
	return from, err
}

// cleanSubject is where a person asks for what intents left to be removed. Only that
// person is to be allowed to publish there.
func cleanSubject(p forge.ProjectID, person string) (string, error) {
	if len(person) > maxSender {
		return "", fmt.Errorf("a person's name has %d bytes; at most %d are allowed", len(person), maxSender)
	}
	_, err := forge.ParseProjectID(string(p))
	return "forge.api." + string(p) + ".by." + escape(person) + "." + verbClean, err
}

// cleanedSubject is where replicas are told whose commits are gone from the origin.
func cleanedSubject(p forge.ProjectID) (string, error) {
	_, err := forge.ParseProjectID(string(p))
	return "forge.cleaned." + string(p), err
}

// everyCleaned matches that of all projects.
const everyCleaned = "forge.cleaned.*"

// submissionSubject is where systems ask for intents.
func submissionSubject(p forge.ProjectID) (string, error) {
	t, err := forge.ParseProjectID(string(p))
	return "forge.intent." + string(t) + ".submit", err
}
