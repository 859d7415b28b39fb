package bus

import (
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/codec"
	forgev1 "github.com/pfl-forge/pfl-forge/proto/forge/v1"
)

// Headers of our own.
const (
	headerReply       = "Forge-Reply" // where the sender of an event waits for the ruling
	headerContentType = "Content-Type"
	headerReason      = "Forge-Reason"   // dead letters: why
	headerStream      = "Forge-Stream"   // dead letters: the stream that it was in
	headerSubject     = "Forge-Subject"  // dead letters: where it was
	headerSequence    = "Forge-Sequence" // dead letters: its sequence there
)

var (
	events    = codec.Must[forge.Event](&forgev1.Event{})
	commands  = codec.Must[forge.Command](&forgev1.Command{})
	results   = codec.Must[forge.Result](&forgev1.Result{})
	records   = codec.Must[forge.Record](&forgev1.Record{})
	summaries = codec.Must[forge.Summary](&forgev1.Summary{})
	rulings   = codec.Must[forge.Ruling](&forgev1.Ruling{})
	progress  = codec.Must[forge.Progress](&forgev1.Progress{})
	controls  = codec.Must[Control](&forgev1.Control{})
)

// verb names what a person's or system's event asks for; it is a token of the
// event's subject. Events from elsewhere have none.
func verb(ev *forge.Event) string {
	switch {
	case ev.Submit != nil:
		return "submit"
	case ev.Edit != nil:
		return "edit"
	case ev.Approve != nil:
		return "approve"
	case ev.Reject != nil:
		return "reject"
	case ev.Answer != nil:
		return "answer"
	case ev.Retry != nil:
		return "retry"
	case ev.Cancel != nil:
		return "cancel"
	}
	return ""
}

// readIntent reads an event from FORGE_INTENTS. Other systems may leave out what
// the subject says anyway, and may write JSON.
func readIntent(m jetstream.Msg) (forge.Event, error) {
	read := events.Unmarshal
	if m.Headers().Get(headerContentType) == "application/json" || codec.LooksLikeJSON(m.Data()) {
		read = events.ParseJSON
	}
	ev, err := read(m.Data())
	if err != nil {
		return ev, err
	}
	project, v, err := parseIntentSubject(m.Subject())
	if err != nil {
		return ev, garbage("Event", "%w", err)
	}
	if got := verb(&ev); got != v {
		return ev, garbage("Event", "it was sent as %q, but holds %q", v, got)
	}
	complete(&ev, project)
	if ev.ID == "" {
		ev.ID = m.Headers().Get(jetstream.MsgIDHeader)
	}
	if ev.ID == "" {
		return ev, garbage("Event", "id is missing")
	}
	if ev.To.Project != project {
		return ev, garbage("Event", "it was sent to project %q, but is for %q", project, ev.To.Project)
	}
	if ev.Submit != nil && ev.Submit.Intent.Project != project {
		return ev, garbage("Event", "it was sent to project %q, but submits to %q", project, ev.Submit.Intent.Project)
	}
	if ev.Submit != nil && ev.Submit.Intent.ID != ev.To.Intent {
		return ev, garbage("Event", "it submits intent %q, but is for %q", ev.Submit.Intent.ID, ev.To.Intent)
	}
	if err := checkIntent(ev.To); err != nil {
		return ev, garbage("Event", "%w", err)
	}
	return ev, nil
}

// complete fills in what an event's subject and its payload say twice.
func complete(ev *forge.Event, project forge.ProjectID) {
	if ev.To.Project == "" {
		ev.To.Project = project
	}
	if ev.Submit == nil {
		return
	}
	in := &ev.Submit.Intent
	if in.Project == "" {
		in.Project = project
	}
	if ev.To.Intent == "" {
		ev.To.Intent = in.ID
	}
	if in.ID == "" {
		in.ID = ev.To.Intent
	}
}

// readResult reads a worker's result as the event that it is.
func readResult(subject string, data []byte) (forge.Event, error) {
	r, err := results.Unmarshal(data)
	if err != nil {
		return forge.Event{}, err
	}
	step, key, err := parseResultSubject(subject)
	if err != nil {
		return forge.Event{}, garbage("Result", "%w", err)
	}
	if r.Attempt.Step != step || r.To != key {
		return forge.Event{}, garbage("Result", "it was sent for %s of %s, but is of %s of %s", step, key, r.Attempt.Step, r.To)
	}
	return forge.Event{ID: resultID(&r), To: r.Machine(), Result: &r}, nil
}

// resultID is the same for every repetition of a result. Two claims of an
// attempt, and two replicas that both took the same claim, make two results.
func resultID(r *forge.Result) string {
	id := strings.Join([]string{"result", string(r.To.Project), string(r.To.Intent), r.Attempt.String(), string(r.Replica)}, "/")
	if r.Started {
		id += "/started"
	}
	return id
}

// readWake reads a fired timer or another machine's event.
func readWake(m jetstream.Msg) (forge.Event, error) {
	ev, err := events.Unmarshal(m.Data())
	if err != nil {
		return ev, err
	}
	if want, err := wakeSubject(ev.To); err != nil || want != m.Subject() {
		return ev, garbage("Event", "it was sent to %s, but is for %q", m.Subject(), ev.To)
	}
	return ev, nil
}

// readCommand reads a command. What the subject says is returned also with an
// error, if the subject is one.
func readCommand(m jetstream.Msg) (forge.Command, error) {
	return parseCommand(m.Subject(), m.Data())
}

func parseCommand(subject string, data []byte) (forge.Command, error) {
	said, err := parseCommandSubject(subject)
	if err != nil {
		return forge.Command{}, garbage("Command", "%w", err)
	}
	c, err := commands.Unmarshal(data)
	if err != nil {
		return said, err
	}
	if c.To != said.To || c.Attempt != said.Attempt || c.Replica != said.Replica {
		return said, garbage("Command", "it was sent to %s, but is %s", subject, c.ID())
	}
	return c, nil
}

func garbage(message, format string, args ...any) error {
	return &GarbageError{Message: message, Err: fmt.Errorf(format, args...)}
}

// headerRoom is what the headers of a message take at most, in bytes. The
// server's limit is on both together.
const headerRoom = 4 << 10

// message returns a message, or a *TooLargeError.
func (b *Bus) message(subject string, data []byte) (*nats.Msg, error) {
	if limit := b.nc.MaxPayload(); limit > 0 && int64(len(data)) > limit-headerRoom {
		return nil, &TooLargeError{Subject: subject, Size: len(data), Limit: limit}
	}
	return &nats.Msg{Subject: subject, Data: data, Header: nats.Header{}}, nil
}
