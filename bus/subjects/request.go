package subjects

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	forge "github.com/pfl-forge/pfl-forge"
)

// maxSender bounds the name of a person or system in a subject, in bytes.
const maxSender = 200

// Personal is where a person asks for something. Only that person is to be allowed
// to publish there.
func Personal(k forge.Key, person, verb string) (string, error) {
	check := CheckIntent
	if k.IsProject() && forProjects[verb] {
		check = CheckKey
	}
	if len(person) > maxSender {
		return "", fmt.Errorf("a person's name has %d bytes; at most %d are allowed", len(person), maxSender)
	}
	return "forge.intent." + string(k.Project) + ".by." + escape(person) + "." + verb, check(k)
}

// PersonalVia is where a gateway hands on what a person asks it for. Only that gateway
// is to be allowed to publish there.
func PersonalVia(k forge.Key, person, gateway, verb string) (string, error) {
	s, err := Personal(k, person, verb)
	if err != nil {
		return "", err
	}
	return strings.TrimSuffix(s, verb) + "via." + gateway + "." + verb, checkVia(person, gateway)
}

// SubmissionVia is where a gateway hands on what a system submits to it.
func SubmissionVia(p forge.ProjectID, system, gateway string) (string, error) {
	if _, err := forge.ParseProjectID(string(p)); err != nil {
		return "", err
	}
	if len(system) > maxSender {
		return "", fmt.Errorf("a system's name has %d bytes; at most %d are allowed", len(system), maxSender)
	}
	return "forge.intent." + string(p) + ".from." + escape(system) + ".via." + gateway + "." + verbSubmit, checkVia(system, gateway)
}

// checkVia returns an error unless a gateway has the name via, and may speak for who has the
// other name, which is one that a person or a system can have.
func checkVia(name, via string) error {
	if via != gateway {
		return fmt.Errorf("%q is no name of a gateway", via)
	}
	if _, err := forge.ParseReplicaID(name); err != nil {
		return fmt.Errorf("name of who asks through a gateway %q: use a-z, 0-9 and hyphens", name)
	}
	if Own(name) {
		return fmt.Errorf("name of who asks through a gateway %q: it is taken by pfl-forge itself", name)
	}
	return nil
}

// forProjects are the acts that can be about a whole project.
var forProjects = map[string]bool{
	"cancel": true, "pause": true, "resume": true, "reflect": true, "teach": true, "set_schedules": true, "pause_schedule": true,
}

// Sender holds the parts of a subject of FORGE_INTENTS: who sent which event.
type Sender struct {
	Project forge.ProjectID
	Verb    string
	// Person says that a person sent it; otherwise a system did.
	Person bool
	// Named says that the subject names the sender.
	Named bool
	// Name is that of the person or system; empty if it is not named.
	Name string
	// Via is the account of the gateway that hands it on, which has made sure who the
	// person or system is; empty if that one sent it.
	Via string
}

// Publisher returns the account that may publish on the subject; empty if it names none.
func (s Sender) Publisher() string { return cmp.Or(s.Via, s.Name) }

// ParseIntent returns the sender in a subject of FORGE_INTENTS.
func ParseIntent(s string) (Sender, error) {
	rest, ok := strings.CutPrefix(s, "forge.intent.")
	t := strings.Split(rest, ".")
	if !ok || len(t) != 2 && len(t) != 4 && len(t) != 6 {
		return Sender{}, fmt.Errorf("%q is no subject of an intent", s)
	}
	project, projectErr := forge.ParseProjectID(t[0])
	from := Sender{Project: project, Verb: t[len(t)-1]}
	if len(t) == 2 {
		return from, projectErr
	}
	from.Named, from.Person = true, t[1] == "by"
	if t[1] != "by" && t[1] != "from" {
		return from, fmt.Errorf("%q is no subject of an intent", s)
	}
	var err error
	from.Name, err = unescape(t[2])
	if len(t) == 6 {
		if from.Via = t[4]; t[3] != "via" || !from.Person && from.Verb != verbSubmit {
			return from, fmt.Errorf("%q is no subject of an intent", s)
		}
		err = errors.Join(err, checkVia(from.Name, from.Via))
	}
	return from, errors.Join(projectErr, err)
}
