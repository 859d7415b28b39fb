package decide

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/internal/wire"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
)

// readResult returns a worker's result as an event, and refuses one whose
// subject names another step or intent: the server has checked only the
// subject.
func readResult(subject string, data []byte) (forge.Event, error) {
	r, err := wire.Results.Unmarshal(data)
	if err != nil {
		return forge.Event{}, err
	}
	step, key, err := subjects.ParseResult(subject)
	if err != nil {
		return forge.Event{}, wire.Garbage("Result", "%w", err)
	}
	if r.Attempt.Step != step || r.To != key {
		return forge.Event{}, wire.Garbage("Result", "it was sent for %s of %s, but is of %s of %s", step, key, r.Attempt.Step, r.To)
	}
	if what := impossible(&r.Usage); what != "" {
		return forge.Event{}, wire.Garbage("Result", "its usage has %s", what)
	}
	return forge.Event{ID: resultID(&r), To: r.Machine(), Message: &r}, nil
}

// The most that one attempt can have used. Less than nothing would give a budget back that is
// spent, and a sum of two amounts near the largest number is none that can be compared or written.
const (
	mostUSD   = 1e6
	mostCount = 1e12
)

// impossible returns the part of a usage that no attempt can have; empty if
// there is none. The rules add up what they are told.
func impossible(u *forge.Usage) string {
	if !(u.CostUSD >= 0 && u.CostUSD <= mostUSD) { // nor is NaN
		return fmt.Sprintf("%v dollars", u.CostUSD)
	}
	for name, n := range map[string]int64{
		"input tokens": u.InputTokens, "output tokens": u.OutputTokens, "tokens from a cache": u.CacheReadTokens, "tokens to a cache": u.CacheWriteTokens,
		"turns": u.Turns, "calls": u.Calls,
	} {
		if n < 0 || n > mostCount {
			return fmt.Sprintf("%d %s", n, name)
		}
	}
	return ""
}

// resultID returns the id of a result's event. It is the same for every
// repetition of a result. Two claims of an attempt, and two replicas that both
// took the same claim, make two results.
func resultID(r *forge.Result) string {
	id := strings.Join([]string{"result", string(r.To.Project), string(r.To.Intent), r.Attempt.String(), string(r.Replica)}, "/")
	if r.IsStart() {
		id += "/started"
	}
	if pull := forge.As[*forge.PullRequest](r.Output); pull != nil {
		id += "/" + lookID(pull)
	}
	return id
}

// lookID returns a text that tells one look at a pull request from another of
// the same attempt: the hash of all that was seen, whenever that was.
//
// A result is about an attempt, and told once. Of a pull request there are as many as it
// changes, all of the attempt that opened it: so each of them needs an id of its own,
// which is the same wherever and how often it is told. Two gateways that look at the
// same moment say the same, and so does one that was killed after it had told a runner.
func lookID(pull *forge.PullRequest) string {
	content := *pull
	content.Seen = time.Time{}
	text, err := json.Marshal(&content)
	if err != nil { // a struct of texts and numbers
		panic(err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// replyOf returns the inbox in which the sender of an event waits for the ruling; empty if it is
// not the sender's own.
func replyOf(m jetstream.Msg) string {
	from, err := subjects.ParseIntent(m.Subject())
	if err != nil {
		return "" // nobody waits for other events
	}
	return wire.InboxOf(from.Publisher(), m.Headers().Get(wire.HeaderReply))
}

// readWake reads a fired timer or another machine's event.
func readWake(m jetstream.Msg) (forge.Event, error) {
	if err := wire.Relayed(m.Headers()); err != nil {
		return forge.Event{}, err
	}
	ev, err := wire.Events.Unmarshal(m.Data())
	if err != nil {
		return ev, wire.OfKind(err, m.Headers(), wire.KindWake)
	}
	if want, err := subjects.Wake(ev.To); err != nil || want != m.Subject() {
		return ev, wire.Garbage("Event", "it was sent to %s, but is for %q", m.Subject(), ev.To)
	}
	return ev, nil
}
