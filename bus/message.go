package bus

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/codec"
	"github.com/pfl-forge/pfl-forge/document"
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

// verb returns what a person's or system's event asks for: a token of the event's
// subject. It is empty for events that people do not send.
func verb(ev *forge.Event) string { return verbs[reflect.TypeOf(ev.Message)] }

var verbs = func() map[reflect.Type]string {
	byType := map[reflect.Type]string{}
	for _, spec := range forge.Messages() {
		byType[reflect.TypeOf(spec.Message)] = spec.Verb
	}
	return byType
}()

// readIntent reads an event from FORGE_INTENTS.
func readIntent(m jetstream.Msg) (forge.Event, error) {
	from, err := parseIntentSubject(m.Subject())
	if err != nil {
		return forge.Event{}, garbage("Event", "%w", err)
	}
	if from.person {
		return readPersonal(m, from)
	}
	meta, err := m.Metadata()
	if err != nil {
		return forge.Event{}, err
	}
	header := m.Headers()
	return submission{
		from: from, contentType: header.Get(headerContentType), data: m.Data(),
		fallback: cmp.Or(header.Get(jetstream.MsgIDHeader), fmt.Sprintf("%d@%d", meta.Sequence.Stream, meta.Timestamp.UnixNano())),
	}.read()
}

// readPersonal reads what a person asks for. It may leave out what the subject says
// anyway, and may be JSON.
func readPersonal(m jetstream.Msg, from sender) (forge.Event, error) {
	read := events.Unmarshal
	if m.Headers().Get(headerContentType) == typeJSON || codec.LooksLikeJSON(m.Data()) {
		read = events.ParseJSON
	}
	ev, err := read(m.Data())
	if err != nil {
		return ev, err
	}
	if got := verb(&ev); got != from.verb {
		return ev, garbage("Event", "it was sent as %q, but holds %q", from.verb, got)
	}
	complete(&ev, from)
	if ev.ID == "" {
		ev.ID = m.Headers().Get(jetstream.MsgIDHeader)
	}
	if ev.ID == "" {
		return ev, garbage("Event", "id is missing")
	}
	if ev.Actor != from.name {
		return ev, garbage("Event", "it was sent by %q, but says that it is from %q", from.name, ev.Actor)
	}
	if ev.To.Project != from.project {
		return ev, garbage("Event", "it was sent to project %q, but is for %q", from.project, ev.To.Project)
	}
	number := 0
	switch m := ev.Message.(type) {
	case *forge.Submit:
		if err := checkPersonalSubmit(&ev, m); err != nil {
			return ev, err
		}
	case *forge.Pause:
		number = m.Number
	case *forge.Resume:
		number = m.Number
	default:
	}
	if number != 0 {
		return ev, wrong(from.verb+".number", "is not for a sender to say; leave it out")
	}
	if _, err := personSubject(ev.To, from.name, from.verb); err != nil {
		return ev, garbage("Event", "%w", err)
	}
	return ev, nil
}

// checkPersonalSubmit checks what a person submits.
func checkPersonalSubmit(ev *forge.Event, submit *forge.Submit) error {
	in := &submit.Intent
	if in.Project != ev.To.Project {
		return garbage("Event", "it was sent to project %q, but submits to %q", ev.To.Project, in.Project)
	}
	if in.ID != ev.To.Intent {
		return garbage("Event", "it submits intent %q, but is for %q", in.ID, ev.To.Intent)
	}
	if in.Source == "" {
		in.Source = forge.SourceHuman
	}
	if in.Source == forge.SourceReflection {
		return wrong("source", "is not for a sender to say; leave it out")
	}
	errs := append(beyond(*submit, "", "Intent"), beyond(undecided(*in, document.Persons), "")...)
	if len(errs) > 0 {
		return wrongs(errs)
	}
	return nil
}

// complete fills in what an event's subject and its payload say twice.
func complete(ev *forge.Event, from sender) {
	ev.To.Project = cmp.Or(ev.To.Project, from.project)
	ev.Actor = cmp.Or(ev.Actor, from.name)
	submit := forge.As[*forge.Submit](ev.Message)
	if submit == nil {
		return
	}
	in := &submit.Intent
	in.Project = cmp.Or(in.Project, from.project)
	ev.To.Intent = cmp.Or(ev.To.Intent, in.ID)
	in.ID = cmp.Or(in.ID, ev.To.Intent)
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
	return forge.Event{ID: resultID(&r), To: r.Machine(), Message: &r}, nil
}

// resultID is the same for every repetition of a result. Two claims of an
// attempt, and two replicas that both took the same claim, make two results.
func resultID(r *forge.Result) string {
	id := strings.Join([]string{"result", string(r.To.Project), string(r.To.Intent), r.Attempt.String(), string(r.Replica)}, "/")
	if r.IsStart() {
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
	if !c.HasInput() {
		return said, garbage("Command", "its input is not one of step %s", c.Attempt.Step)
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
