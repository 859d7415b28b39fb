package subjects

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	forge "github.com/pfl-forge/pfl-forge"
)

// Every subject is built and taken apart in this package, and nowhere else. A builder fails when
// an id is not one, so that no text of anybody becomes a token, a wildcard or several tokens.
//
//	forge.intent.<project>.submit                                                   FORGE_INTENTS, from systems
//	forge.intent.<project>.from.<escaped system>.submit                             FORGE_INTENTS, from one system alone
//	forge.intent.<project>.by.<escaped person>.<verb>                               FORGE_INTENTS, from one person
//	forge.intent.<project>.by.<escaped person>.via.<gateway>.<verb>                 FORGE_INTENTS, from one person through a gateway
//	forge.intent.<project>.from.<escaped system>.via.<gateway>.submit               FORGE_INTENTS, from one system through a gateway
//	forge.journal.<project>.<intent>                                                FORGE_JOURNAL
//	forge.project.<project>                                                         FORGE_PROJECTS
//	forge.result.<step>.<project>.<intent>                                          not stored
//	forge.command.<step>.any.<project>.<intent>.<task or ->.<number>.<claim>        FORGE_COMMANDS
//	forge.command.<step>.in.<group>.<project>.<intent>.<task or ->.<number>.<claim>
//	forge.command.<step>.on.<replica>.<project>.<intent>.<task or ->.<number>.<claim>
//	forge.wake.<project>[.<intent>]                                                 FORGE_WAKES
//	forge.timer.<project>.<intent or ->.<escaped key>                               FORGE_WAKES
//	forge.epoch.<commands or wakes>                                                 either memory stream
//	forge.lease.<step>.<project>.<intent>.<task or ->                               FORGE_LEASES
//	forge.transcript.<project>.<intent>.<task or ->.<step>.<number>.<claim>         FORGE_TRANSCRIPTS
//	forge.dead.<stream>.<project or ->                                              FORGE_DEAD
//	forge.progress.<project>.<intent>                                               not stored
//	forge.control.<project>.<intent or ->                                           not stored
//	forge.event.<project>.<intent>.<what>                                           FORGE_EVENTS
//	forge.refusal.<project>.<escaped system or ->                                   FORGE_REFUSALS
//	forge.hook.<hook>.<digest>                                                      FORGE_HOOKS
//	forge.intake.<forge>                                                            FORGE_INTAKE
//	forge.api.<project>.submit                                                      not stored
//	forge.api.<project>.from.<escaped system>.<submit, list, show or services>      not stored
//	forge.api.<project>.by.<escaped person>.<list, show, services, read or clean>   not stored
//	forge.cleaned.<project>                                                         not stored

// None stands for an empty token; no id starts with a hyphen.
const None = "-"

// CheckKey returns an error unless the key is that of an intent or a project.
func CheckKey(k forge.Key) error {
	if _, err := forge.ParseProjectID(string(k.Project)); err != nil {
		return err
	}
	if k.IsProject() {
		return nil
	}
	_, err := forge.ParseIntentID(string(k.Intent))
	return err
}

// CheckIntent returns an error unless the key is that of an intent.
func CheckIntent(k forge.Key) error {
	if err := CheckKey(k); err != nil {
		return err
	}
	_, err := forge.ParseIntentID(string(k.Intent))
	return err
}

// gateway is the account through which people and systems act that do not speak NATS.
const gateway = "gateway"

// Own reports whether pfl-forge has a name for itself, for an account, a Secret
// or an inbox: no person and no system can have one.
func Own(name string) bool { return slices.Contains(own, name) }

var own = []string{
	"runner", "analyzer", "implementer", "reviewer", "reflector", "auth", gateway, "backup", "server", "ca", "signers", "services", "login",
}

// Journal returns the subject of a machine's journal.
func Journal(k forge.Key) (string, error) {
	if k.IsProject() {
		return "forge.project." + string(k.Project), CheckKey(k)
	}
	return "forge.journal." + string(k.Project) + "." + string(k.Intent), CheckKey(k)
}

// ParseJournal is the reverse of Journal.
func ParseJournal(s string) (forge.Key, error) {
	if project, ok := strings.CutPrefix(s, "forge.project."); ok {
		k := forge.Key{Project: forge.ProjectID(project)}
		return k, CheckKey(k)
	}
	t, err := Tokens(s, "forge.journal.", 2)
	if err != nil {
		return forge.Key{}, err
	}
	k := forge.Key{Project: forge.ProjectID(t[0]), Intent: forge.IntentID(t[1])}
	return k, CheckIntent(k)
}

// EveryJournal matches the journals of all intents, EveryProject those of all
// projects.
const (
	EveryJournal = "forge.journal.*.*"
	EveryProject = "forge.project.*"
)

// IntentJournals returns the filter that matches the journals of a project's
// intents, or of those of every project if it is empty.
func IntentJournals(p forge.ProjectID) (string, error) {
	t, err := projectToken(p)
	return "forge.journal." + t + ".*", err
}

// ProjectJournals returns the filter for the journal of a project's own machine, or
// of all projects' if it is empty.
func ProjectJournals(p forge.ProjectID) (string, error) {
	t, err := projectToken(p)
	return "forge.project." + t, err
}

// projectToken returns a project as a token of a filter; all projects if it is
// empty.
func projectToken(p forge.ProjectID) (string, error) {
	if p == "" {
		return "*", nil
	}
	_, err := forge.ParseProjectID(string(p))
	return string(p), err
}

// Result returns the subject on which a worker asks a runner to decide on a result.
func Result(r *forge.Result) (string, error) {
	if _, err := forge.ParseStep(string(r.Attempt.Step)); err != nil {
		return "", err
	}
	return strings.Join([]string{"forge.result", string(r.Attempt.Step), string(r.To.Project), string(r.To.Intent)}, "."), CheckIntent(r.To)
}

// ParseResult is the reverse of Result.
func ParseResult(s string) (step forge.Step, k forge.Key, err error) {
	t, err := Tokens(s, "forge.result.", 3)
	if err != nil {
		return "", k, err
	}
	if step, err = forge.ParseStep(t[0]); err != nil {
		return "", k, err
	}
	k = forge.Key{Project: forge.ProjectID(t[1]), Intent: forge.IntentID(t[2])}
	return step, k, CheckIntent(k)
}

// watch stands in place of a step, and EveryWatch matches every lease on watching a forge.
const (
	watch      = "watch"
	EveryWatch = "forge.lease." + watch + ".*." + None + "." + None
)

// Lease returns the subject of the lease on a step of a task, or of an intent if
// task is empty.
func Lease(intent forge.Key, task forge.TaskID, step forge.Step) (string, error) {
	if _, err := forge.ParseStep(string(step)); err != nil {
		return "", err
	}
	of := None
	if task != "" {
		if _, err := forge.ParseTaskID(string(task)); err != nil {
			return "", err
		}
		of = string(task)
	}
	return strings.Join([]string{"forge.lease", string(step), string(intent.Project), string(intent.Intent), of}, "."), CheckIntent(intent)
}

// Watch returns the subject of the lease on watching a forge. It is among those
// on steps, and a step of none.
func Watch(forgeName string) (string, error) {
	_, err := forge.ParseProjectID(forgeName) // the name is one of that form
	return strings.Join([]string{"forge.lease", watch, forgeName, None, None}, "."), err
}

// LeasesIn matches every lease on something of a project.
func LeasesIn(p forge.ProjectID) (string, error) {
	_, err := forge.ParseProjectID(string(p))
	return "forge.lease.*." + string(p) + ".*.*", err
}

// ParseLease returns the step and the intent of a lease.
func ParseLease(s string) (step forge.Step, k forge.Key, err error) {
	t, err := Tokens(s, "forge.lease.", 4)
	if err != nil {
		return "", k, err
	}
	if step, err = forge.ParseStep(t[0]); err != nil {
		return "", k, err
	}
	k = forge.Key{Project: forge.ProjectID(t[1]), Intent: forge.IntentID(t[2])}
	return step, k, CheckIntent(k)
}

// LeasesOf matches every lease on a step.
func LeasesOf(step forge.Step) (string, error) {
	_, err := forge.ParseStep(string(step))
	return "forge.lease." + string(step) + ".*.*.*", err
}

// Wake returns the subject on which a machine gets timers and events of other
// machines.
func Wake(k forge.Key) (string, error) {
	s := "forge.wake." + string(k.Project)
	if !k.IsProject() {
		s += "." + string(k.Intent)
	}
	return s, CheckKey(k)
}

// Timer returns the subject of a schedule; setting a timer again replaces it.
func Timer(t *forge.Timer) (string, error) {
	return Timers(t.To, escape(t.Key)), CheckKey(t.To)
}

// Timers is the subject of a machine's timer, or with a wildcard those of all of
// them.
func Timers(k forge.Key, key string) string {
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

// intentToken returns the token of a machine; a project's own one for a project.
func intentToken(k forge.Key) string {
	if k.IsProject() {
		return None
	}
	return string(k.Intent)
}

// Progress returns the subject on which the attempts of an intent tell how they go.
func Progress(k forge.Key) (string, error) {
	return "forge.progress." + string(k.Project) + "." + string(k.Intent), CheckIntent(k)
}

// ProgressIn returns the filter for the progress in a project, or in all if it is
// empty.
func ProgressIn(p forge.ProjectID) (string, error) {
	t, err := projectToken(p)
	return "forge.progress." + t + ".*", err
}

// Control returns the subject on which workers are told what is not needed any more.
func Control(k forge.Key) (string, error) {
	return "forge.control." + string(k.Project) + "." + intentToken(k), CheckKey(k)
}

// EveryResult matches the results of all workers.
const EveryResult = "forge.result.*.*.*"

// Dead is where the dead letters of a stream are, or, if it is empty, those of
// results: each under the project of the subject that the message had, so that a
// project's can be read alone.
func Dead(stream, subject string) string {
	if stream == "" {
		stream = "results"
	}
	of := None
	if p, ok := ProjectOf(subject); ok {
		of = string(p)
	}
	return "forge.dead." + strings.ToLower(strings.TrimPrefix(stream, "FORGE_")) + "." + of
}

// EveryDead matches the dead letters of every stream and project.
const EveryDead = "forge.dead.*.*"

// DeadIn returns the filter for the dead letters of a project.
func DeadIn(p forge.ProjectID) (string, error) {
	_, err := forge.ParseProjectID(string(p))
	return "forge.dead.*." + string(p), err
}

// Tokens returns the tokens of a subject after a prefix, if there are n of them.
func Tokens(s, prefix string, n int) ([]string, error) {
	rest, ok := strings.CutPrefix(s, prefix)
	t := strings.Split(rest, ".")
	if !ok || len(t) != n {
		return nil, fmt.Errorf("%q is no subject of the shape %s with %d more tokens", s, prefix, n)
	}
	return t, nil
}
