package subjects

import (
	"fmt"
	"strings"

	forge "github.com/pfl-forge/pfl-forge"
)

// The subjects in this file are those on which other systems and people are told
// what happens, and ask what is answered at once.

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

// The endpoints that answer at once, of every project: what a person asks for, and
// what a system does. Only a submission may come without a name.
const (
	APISubmit         = "forge.api.*." + verbSubmit
	APISubmitFrom     = "forge.api.*.from.*." + verbSubmit
	APIListBy         = "forge.api.*.by.*." + VerbList
	APIListFrom       = "forge.api.*.from.*." + VerbList
	APIShowBy         = "forge.api.*.by.*." + VerbShow
	APIShowFrom       = "forge.api.*.from.*." + VerbShow
	APIDiffBy         = "forge.api.*.by.*." + VerbDiff
	APIDiffFrom       = "forge.api.*.from.*." + VerbDiff
	APITranscriptBy   = "forge.api.*.by.*." + VerbTranscript
	APITranscriptFrom = "forge.api.*.from.*." + VerbTranscript
	APICostsBy        = "forge.api.*.by.*." + VerbCosts
	APICostsFrom      = "forge.api.*.from.*." + VerbCosts
	APIQueueBy        = "forge.api.*.by.*." + VerbQueue
	APIQueueFrom      = "forge.api.*.from.*." + VerbQueue
	APIHealthBy       = "forge.api.*.by.*." + VerbHealth
	APIHealthFrom     = "forge.api.*.from.*." + VerbHealth
	APITimelineBy     = "forge.api.*.by.*." + VerbTimeline
	APITimelineFrom   = "forge.api.*.from.*." + VerbTimeline
	APIAuditBy        = "forge.api.*.by.*." + VerbAudit
	APIAuditFrom      = "forge.api.*.from.*." + VerbAudit
	APISettingsBy     = "forge.api.*.by.*." + VerbSettings
	APISettingsFrom   = "forge.api.*.from.*." + VerbSettings
	APIWholeBy        = "forge.api.*.by.*." + VerbWhole
	APIWholeFrom      = "forge.api.*.from.*." + VerbWhole
	APIServicesBy     = "forge.api.*.by.*." + VerbServices
	APIServicesFrom   = "forge.api.*.from.*." + VerbServices
	APIRead           = "forge.api.*.by.*." + VerbRead
	APIClean          = "forge.api.*.by.*." + VerbClean
)

// The last tokens of these subjects.
const (
	VerbList       = "list"
	VerbShow       = "show"
	VerbDiff       = "diff"
	VerbTranscript = "transcript"
	VerbCosts      = "costs"
	VerbQueue      = "queue"
	VerbHealth     = "health"
	VerbTimeline   = "timeline"
	VerbAudit      = "audit"
	VerbSettings   = "settings"
	VerbWhole      = "whole"
	VerbServices   = "services"
	VerbRead       = "read"
	VerbClean      = "clean"
	verbSubmit     = "submit"
)

// The server checks who may publish on a subject, but not whether the subject makes
// sense: a system with the right to all that begins with its name could ask for what
// only people may.

// askers says who may ask for what: unnamed senders, systems, people.
var askers = map[string]struct{ unnamed, system, person bool }{
	verbSubmit:     {unnamed: true, system: true},
	VerbList:       {system: true, person: true},
	VerbShow:       {system: true, person: true},
	VerbDiff:       {system: true, person: true},
	VerbTranscript: {system: true, person: true},
	VerbCosts:      {system: true, person: true},
	VerbQueue:      {system: true, person: true},
	VerbHealth:     {system: true, person: true},
	VerbTimeline:   {system: true, person: true},
	VerbAudit:      {system: true, person: true}, // of systems, the gateway has the right to it
	VerbSettings:   {system: true, person: true},
	VerbWhole:      {system: true, person: true},
	VerbServices:   {system: true, person: true},
	VerbRead:       {person: true},
	VerbClean:      {person: true},
}

// ParseAPI returns whom a request comes from: an unnamed sender, a system, or a
// person. Each may ask only for what is meant for it.
func ParseAPI(s string) (Sender, error) {
	rest, ok := strings.CutPrefix(s, "forge.api.")
	if !ok {
		return Sender{}, fmt.Errorf("%q is no subject of a request", s)
	}
	from, err := ParseIntent("forge.intent." + rest)
	if err != nil {
		return from, err
	}
	may := askers[from.Verb]
	if from.Via != "" || from.Person && !may.person || from.Named && !from.Person && !may.system || !from.Named && !may.unnamed {
		err = fmt.Errorf("%q is no subject of a request", s)
	}
	return from, err
}

// Asked is where a person asks for something that is answered at once. Only that
// person is to be allowed to publish there.
func Asked(p forge.ProjectID, person, verb string) (string, error) {
	if len(person) > maxSender {
		return "", fmt.Errorf("a person's name has %d bytes; at most %d are allowed", len(person), maxSender)
	}
	if !askers[verb].person {
		return "", fmt.Errorf("people cannot ask for %q", verb)
	}
	_, err := forge.ParseProjectID(string(p))
	return "forge.api." + string(p) + ".by." + escape(person) + "." + verb, err
}

// AskedFrom is where a system asks for something that is answered at once. Only that
// system is to be allowed to publish there.
func AskedFrom(p forge.ProjectID, system, verb string) (string, error) {
	if len(system) > maxSender {
		return "", fmt.Errorf("a system's name has %d bytes; at most %d are allowed", len(system), maxSender)
	}
	if !askers[verb].system {
		return "", fmt.Errorf("systems cannot ask for %q", verb)
	}
	_, err := forge.ParseProjectID(string(p))
	return "forge.api." + string(p) + ".from." + escape(system) + "." + verb, err
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

// EventsIn limits a filter of events, such as forge.wake.>, to a project: events are
// about the project itself, or about something in it.
func EventsIn(filter string, p forge.ProjectID) ([]string, error) {
	_, err := forge.ParseProjectID(string(p))
	of := strings.TrimSuffix(filter, ">") + string(p)
	return []string{of, of + ".>"}, err
}

// projectAt says where the project is in the subjects that begin with some tokens:
// its index among all tokens.
var projectAt = map[string]int{
	"intent": 2, "journal": 2, "project": 2, "wake": 2, "timer": 2, "transcript": 2, "progress": 2, "control": 2, "event": 2, "refusal": 2,
	"api": 2, "cleaned": 2, "result": 3, "lease": 3, "dead": 3,
}

// Permissions and filters go by these tokens, and so does who may read a message: a
// new kind of subject that is not in the table belongs to no project, so that people
// cannot read it.

// ProjectOf returns the project that a subject of ours names; false if it names
// none.
func ProjectOf(subject string) (forge.ProjectID, bool) {
	t := strings.Split(subject, ".")
	if len(t) < 3 || t[0] != "forge" {
		return "", false
	}
	at := projectAt[t[1]]
	if t[1] == "command" && len(t) > 3 { // forge.command.<step>.any.<project>, or .in.<group>.<project>
		if at = 5; t[3] == "any" {
			at = 4
		}
	}
	if at == 0 || at >= len(t) {
		return "", false
	}
	p, err := forge.ParseProjectID(t[at])
	return p, err == nil
}

const (
	// ServerAsks is where the server asks whether to let a connection in, and as
	// which account.
	ServerAsks = "$SYS.REQ.USER.AUTH"
	// EveryCertify matches the requests to certify the key of a login.
	EveryCertify = "forge.auth.*.certify"
)

// Certify is where the holder of an nkey, whose public part key is, has the key of a
// login certified.
func Certify(key string) string { return strings.Replace(EveryCertify, "*", key, 1) }

// ParseCertify returns the key in a subject of Certify.
func ParseCertify(s string) (key string, err error) {
	before, after, _ := strings.Cut(EveryCertify, "*")
	key, ok := strings.CutPrefix(s, before)
	if key, found := strings.CutSuffix(key, after); ok && found && key != "" && !strings.Contains(key, ".") {
		return key, nil
	}
	return "", fmt.Errorf("subject %.100q is not %s", s, EveryCertify)
}
