package bus

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	forge "github.com/pfl-forge/pfl-forge"
)

// Every subject is built and taken apart in this file, commands.go or outsidesubjects.go,
// and nowhere else. A builder fails when an id is not one, so that no text of anybody becomes a
// token, a wildcard or several tokens.
//
//	forge.intent.<project>.submit                                                   FORGE_INTENTS, from systems
//	forge.intent.<project>.from.<escaped system>.submit                             FORGE_INTENTS, from one system alone
//	forge.intent.<project>.by.<escaped person>.<verb>                               FORGE_INTENTS, from one person
//	forge.journal.<project>.<intent>                                                FORGE_JOURNAL
//	forge.project.<project>                                                            FORGE_PROJECTS
//	forge.result.<step>.<project>.<intent>                                          not stored
//	forge.command.<step>.any.<project>.<intent>.<task or ->.<number>.<claim>        FORGE_COMMANDS
//	forge.command.<step>.on.<replica>.<project>.<intent>.<task or ->.<number>.<claim>
//	forge.wake.<project>[.<intent>]                                                 FORGE_WAKES
//	forge.timer.<project>.<intent or ->.<escaped key>                               FORGE_WAKES
//	forge.epoch.<commands or wakes>                                                 either memory stream
//	forge.lease.<step>.<project>.<intent>.<task or ->                               FORGE_LEASES
//	forge.transcript.<project>.<intent>.<task or ->.<step>.<number>.<claim>         FORGE_TRANSCRIPTS
//	forge.dead.<stream>                                                             FORGE_DEAD
//	forge.progress.<project>.<intent>                                               not stored
//	forge.control.<project>.<intent or ->                                           not stored
//	forge.event.<project>.<intent>.<what>                                           FORGE_EVENTS
//	forge.refusal.<project>.<escaped system or ->                                   FORGE_REFUSALS
//	forge.api.<project>.<submit, list or show>                                      not stored
//	forge.api.<project>.from.<escaped system>.submit                                not stored
//	forge.api.<project>.by.<escaped person>.clean                                   not stored
//	forge.cleaned.<project>                                                         not stored

// none stands for an empty token; no id starts with a hyphen.
const none = "-"

func checkKey(k forge.Key) error {
	if _, err := forge.ParseProjectID(string(k.Project)); err != nil {
		return err
	}
	if k.IsProject() {
		return nil
	}
	_, err := forge.ParseIntentID(string(k.Intent))
	return err
}

func checkIntent(k forge.Key) error {
	if err := checkKey(k); err != nil {
		return err
	}
	_, err := forge.ParseIntentID(string(k.Intent))
	return err
}

// maxSender bounds the name of a person or system in a subject, in bytes.
const maxSender = 200

// personSubject is where a person asks for something. Only that person is to be
// allowed to publish there.
func personSubject(k forge.Key, person, verb string) (string, error) {
	check := checkIntent
	if k.IsProject() && forProjects[verb] {
		check = checkKey
	}
	if len(person) > maxSender {
		return "", fmt.Errorf("a person's name has %d bytes; at most %d are allowed", len(person), maxSender)
	}
	return "forge.intent." + string(k.Project) + ".by." + escape(person) + "." + verb, check(k)
}

// forProjects are the wishes that can be about a whole project.
var forProjects = map[string]bool{"cancel": true, "pause": true, "resume": true, "reflect": true}

// sender is what a subject of FORGE_INTENTS says about who sent what.
type sender struct {
	project forge.ProjectID
	verb    string
	person  bool   // otherwise a system
	named   bool   // the subject says who it is
	name    string // of the person or system, if named
}

func parseIntentSubject(s string) (sender, error) {
	rest, ok := strings.CutPrefix(s, "forge.intent.")
	t := strings.Split(rest, ".")
	if !ok || len(t) != 2 && len(t) != 4 {
		return sender{}, fmt.Errorf("%q is no subject of an intent", s)
	}
	project, err := forge.ParseProjectID(t[0])
	from := sender{project: project, verb: t[len(t)-1]}
	if err != nil || len(t) == 2 {
		return from, err
	}
	from.named, from.person = true, t[1] == "by"
	if t[1] != "by" && t[1] != "from" {
		return from, fmt.Errorf("%q is no subject of an intent", s)
	}
	from.name, err = unescape(t[2])
	return from, err
}

func journalSubject(k forge.Key) (string, error) {
	if k.IsProject() {
		return "forge.project." + string(k.Project), checkKey(k)
	}
	return "forge.journal." + string(k.Project) + "." + string(k.Intent), checkKey(k)
}

func parseJournalSubject(s string) (forge.Key, error) {
	if project, ok := strings.CutPrefix(s, "forge.project."); ok {
		k := forge.Key{Project: forge.ProjectID(project)}
		return k, checkKey(k)
	}
	t, err := tokens(s, "forge.journal.", 2)
	if err != nil {
		return forge.Key{}, err
	}
	k := forge.Key{Project: forge.ProjectID(t[0]), Intent: forge.IntentID(t[1])}
	return k, checkIntent(k)
}

// everyJournal matches the journals of all intents, everyProject those of all projects.
const (
	everyJournal = "forge.journal.*.*"
	everyProject = "forge.project.*"
)

// intentJournals and laneJournals match the journals of a project, or of every
// project if it is empty.
func intentJournals(p forge.ProjectID) (string, error) {
	t, err := projectToken(p)
	return "forge.journal." + t + ".*", err
}

func projectJournals(p forge.ProjectID) (string, error) {
	t, err := projectToken(p)
	return "forge.project." + t, err
}

func projectToken(p forge.ProjectID) (string, error) {
	if p == "" {
		return "*", nil
	}
	_, err := forge.ParseProjectID(string(p))
	return string(p), err
}

func resultSubject(r *forge.Result) (string, error) {
	if _, err := forge.ParseStep(string(r.Attempt.Step)); err != nil {
		return "", err
	}
	return strings.Join([]string{"forge.result", string(r.Attempt.Step), string(r.To.Project), string(r.To.Intent)}, "."), checkIntent(r.To)
}

func parseResultSubject(s string) (step forge.Step, k forge.Key, err error) {
	t, err := tokens(s, "forge.result.", 3)
	if err != nil {
		return "", k, err
	}
	if step, err = forge.ParseStep(t[0]); err != nil {
		return "", k, err
	}
	k = forge.Key{Project: forge.ProjectID(t[1]), Intent: forge.IntentID(t[2])}
	return step, k, checkIntent(k)
}

func leaseSubject(intent forge.Key, task forge.TaskID, step forge.Step) (string, error) {
	if _, err := forge.ParseStep(string(step)); err != nil {
		return "", err
	}
	of := none
	if task != "" {
		if _, err := forge.ParseTaskID(string(task)); err != nil {
			return "", err
		}
		of = string(task)
	}
	return strings.Join([]string{"forge.lease", string(step), string(intent.Project), string(intent.Intent), of}, "."), checkIntent(intent)
}

// leasesIn matches every lease on something of a project.
func leasesIn(p forge.ProjectID) (string, error) {
	_, err := forge.ParseProjectID(string(p))
	return "forge.lease.*." + string(p) + ".*.*", err
}

func parseLeaseSubject(s string) (step forge.Step, k forge.Key, err error) {
	t, err := tokens(s, "forge.lease.", 4)
	if err != nil {
		return "", k, err
	}
	k = forge.Key{Project: forge.ProjectID(t[1]), Intent: forge.IntentID(t[2])}
	return forge.Step(t[0]), k, checkIntent(k)
}

// leasesOf matches every lease on a step.
func leasesOf(step forge.Step) (string, error) {
	_, err := forge.ParseStep(string(step))
	return "forge.lease." + string(step) + ".*.*.*", err
}

// isAck reports whether a subject is where the server is told about a command.
func isAck(s string) bool {
	return strings.HasPrefix(s, "$JS.ACK.") && strings.Contains(s, "."+streamCommands+".")
}

func wakeSubject(k forge.Key) (string, error) {
	s := "forge.wake." + string(k.Project)
	if !k.IsProject() {
		s += "." + string(k.Intent)
	}
	return s, checkKey(k)
}

func timerSubject(t *forge.Timer) (string, error) {
	return timersOf(t.To, escape(t.Key)), checkKey(t.To)
}

// timersOf is the subject of a machine's timer, or with a wildcard those of all
// of them.
func timersOf(k forge.Key, key string) string {
	return "forge.timer." + string(k.Project) + "." + intentToken(k) + "." + key
}

// escape makes a token out of a timer's key: what is not a letter, a digit or a
// hyphen becomes = and two hexadecimal digits.
func escape(key string) string {
	var b strings.Builder
	for i := range len(key) {
		c := key[i]
		if c == '-' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "=%02x", c)
		}
	}
	if key == "" {
		return "="
	}
	return b.String()
}

// unescape is the reverse of escape, and takes nothing else.
func unescape(token string) (string, error) {
	if token == "=" {
		return "", nil
	}
	var b strings.Builder
	for rest := token; rest != ""; {
		if rest[0] != '=' {
			b.WriteByte(rest[0])
			rest = rest[1:]
			continue
		}
		if len(rest) < 3 {
			return "", fmt.Errorf("%q ends within an escape", token)
		}
		n, err := strconv.ParseUint(rest[1:3], 16, 8)
		if err != nil {
			return "", fmt.Errorf("%q holds an escape that is none", token)
		}
		b.WriteByte(byte(n))
		rest = rest[3:]
	}
	if text := b.String(); escape(text) == token && utf8.ValidString(text) {
		return text, nil
	}
	return "", fmt.Errorf("%q is not how a name is escaped", token)
}

func intentToken(k forge.Key) string {
	if k.IsProject() {
		return none
	}
	return string(k.Intent)
}

func progressSubject(k forge.Key) (string, error) {
	return "forge.progress." + string(k.Project) + "." + string(k.Intent), checkIntent(k)
}

func progressOf(p forge.ProjectID) (string, error) {
	t, err := projectToken(p)
	return "forge.progress." + t + ".*", err
}

// transcriptSubject names the transcript of an attempt.
func transcriptSubject(to forge.Key, a forge.Attempt) (string, error) {
	if err := checkIntent(to); err != nil {
		return "", err
	}
	like := TranscriptFilter{Project: to.Project, Intent: to.Intent, Task: a.Task, Step: a.Step, Number: a.Number}
	if a.Step == "" || a.Number < 1 || a.Claim < 1 {
		return "", fmt.Errorf("%s is no attempt", a)
	}
	subject, err := transcriptsLike(like)
	t := strings.Split(subject, ".")
	if a.Task == "" {
		t[4] = none
	}
	t[7] = strconv.Itoa(a.Claim)
	return strings.Join(t, "."), err
}

// transcriptsLike matches transcripts.
func transcriptsLike(f TranscriptFilter) (string, error) {
	t := []string{"forge", "transcript", "*", "*", "*", "*", "*", "*"}
	var errs []error
	set := func(i int, value string, err error) {
		t[i] = value
		errs = append(errs, err)
	}
	if f.Project != "" {
		id, err := forge.ParseProjectID(string(f.Project))
		set(2, string(id), err)
	}
	if f.Intent != "" {
		id, err := forge.ParseIntentID(string(f.Intent))
		set(3, string(id), err)
	}
	if f.Task != "" {
		id, err := forge.ParseTaskID(string(f.Task))
		set(4, string(id), err)
	}
	if f.Step != "" {
		step, err := forge.ParseStep(string(f.Step))
		set(5, string(step), err)
	}
	if f.Number > 0 {
		set(6, strconv.Itoa(f.Number), nil)
	}
	return strings.Join(t, "."), errors.Join(errs...)
}

func parseTranscriptSubject(s string) (to forge.Key, a forge.Attempt, err error) {
	t, err := tokens(s, "forge.transcript.", 6)
	if err != nil {
		return to, a, err
	}
	to = forge.Key{Project: forge.ProjectID(t[0]), Intent: forge.IntentID(t[1])}
	a = forge.Attempt{Step: forge.Step(t[3])}
	if t[2] != none {
		a.Task = forge.TaskID(t[2])
	}
	if a.Number, err = strconv.Atoi(t[4]); err != nil {
		return to, a, err
	}
	if a.Claim, err = strconv.Atoi(t[5]); err != nil {
		return to, a, err
	}
	if again, err := transcriptSubject(to, a); err != nil || again != s {
		return to, a, fmt.Errorf("%q is no transcript's subject", s)
	}
	return to, a, nil
}

func controlSubject(k forge.Key) (string, error) {
	return "forge.control." + string(k.Project) + "." + intentToken(k), checkKey(k)
}

// everyResult matches the results of all workers.
const everyResult = "forge.result.*.*.*"

// deadSubject is where a stream's dead letters are, or, if it is empty, those of
// results.
func deadSubject(stream string) string {
	if stream == "" {
		return "forge.dead.results"
	}
	return "forge.dead." + strings.ToLower(strings.TrimPrefix(stream, "FORGE_"))
}

func tokens(s, prefix string, n int) ([]string, error) {
	rest, ok := strings.CutPrefix(s, prefix)
	t := strings.Split(rest, ".")
	if !ok || len(t) != n {
		return nil, fmt.Errorf("%q is no subject of the shape %s with %d more tokens", s, prefix, n)
	}
	return t, nil
}
