package conn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/internal/wire"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
)

// People have no right to read streams: they ask a runner, which reads for them what is of one
// project. This file is their side of it; package requests has the runner's.

// What a Read asks for.
const (
	ReadLast  = "last"  // the last message on a subject
	ReadFirst = "first" // the first one
	ReadNext  = "next"  // messages on a subject after a sequence, in order
	ReadLasts = "lasts" // the last message of every subject that a filter matches
	ReadIdle  = "idle"  // whether the project's events are decided
)

// A wait is much longer than the way to a runner and back, so that following costs little, and
// short enough that a reader soon asks another runner when the one that waited has died.

// ReadWait is how long a runner waits for a message where there is none yet.
const ReadWait = 2 * time.Second

// readGrace is how long an answer may be on its way after that.
const readGrace = 2 * time.Second

// A runner answers with each message as it is stored, its headers with the stamps that the server
// adds to a direct get, and then with a ReadEnd, which has no such stamp. So a publisher who puts
// the header of an error on a message cannot end an answer.

// answerRoom bounds the messages of an answer that wait to be taken.
const answerRoom = 2 * BatchSize

// Read is a person's request to a runner for a piece of the project's streams.
type Read struct {
	What string `json:"read"`
	// Subject is that of messages, or a filter. The stream follows from it.
	Subject string `json:"subject,omitempty"`
	// Content, with the subject of an object, asks for the chunks of that content of it.
	Content string `json:"content,omitempty"`
	// After is the sequence to go on after; 0 begins at Since, or at the beginning.
	After uint64    `json:"after,omitempty"`
	Since time.Time `json:"since,omitzero"`
	// Past is the subject to go on after, in a list.
	Past string `json:"past,omitempty"`
	// Wait has the runner wait a while for a message if there is none.
	Wait bool `json:"wait,omitempty"`
}

// ReadEnd ends the answer to a Read, after its messages.
type ReadEnd struct {
	// Messages is how many there were: with fewer, some are lost on the way.
	Messages int `json:"messages"`
	// More says that others are left, for a Read after the last one or, in a list, past Next.
	More bool   `json:"more,omitempty"`
	Next string `json:"next,omitempty"`
	Idle bool   `json:"idle,omitempty"`
}

// ErrRunnerDown says that no runner answers now.
var ErrRunnerDown = errors.New("no runner is up: start forge-runner with this server")

// errLate says that an answer did not come, or not as a whole.
var errLate = fmt.Errorf("the runner does not answer in time: %w", context.DeadlineExceeded)

// person asks runners for the streams of one project, under one name. It never names a stream:
// that follows from the subject, so that no request can be about one and read another.
type person struct {
	subject string
	project forge.ProjectID
}

// AsPerson makes the connection ask a runner for everything that it reads of streams, in the name
// of a person. Calls that look at a stream as a whole fail from then on, with ErrNotAllowed.
func (c *Conn) AsPerson(name string, project forge.ProjectID) error {
	subject, err := subjects.Asked(project, name, subjects.VerbRead)
	if err != nil {
		return err
	}
	c.person = &person{subject: subject, project: project}
	return nil
}

// Project returns the only project that this connection reads; empty if it reads all.
func (c *Conn) Project() forge.ProjectID {
	if c.person == nil {
		return ""
	}
	return c.person.project
}

// Idle asks a runner whether it has decided on all events of the project.
func (c *Conn) Idle(ctx context.Context) (bool, error) {
	_, end, err := c.person.ask(ctx, c, Read{What: ReadIdle})
	return end.Idle, err
}

// Content calls do with the chunks of an object's content, in order. meta is the subject of the
// message that names the content.
func (c *Conn) Content(ctx context.Context, stream, chunks, meta, content string, do func(Stored) error) error {
	var err error
	if c.person != nil {
		_, err = c.person.each(ctx, c, Read{What: ReadNext, Subject: meta, Content: content}, do)
	} else {
		_, err = c.Each(ctx, stream, chunks, do)
	}
	return err
}

// one asks for one message. Its error is ErrNotFound where there is none, as that of the calls of
// JetStream which it stands for.
func (p *person) one(ctx context.Context, c *Conn, r Read) (Stored, error) {
	list, _, err := p.ask(ctx, c, r)
	if err != nil {
		return Stored{}, err
	}
	if len(list) != 1 {
		return Stored{}, fmt.Errorf("read %s: %w", r.Subject, ErrNotFound)
	}
	return list[0], nil
}

// each asks for messages until none is left, and goes on after the last one that do has taken. It
// returns the sequence of that.
func (p *person) each(ctx context.Context, c *Conn, r Read, do func(Stored) error) (uint64, error) {
	for {
		list, end, err := p.ask(ctx, c, r)
		if err != nil {
			return r.After, err
		}
		for _, m := range list {
			if err := do(m); err != nil {
				return r.After, err
			}
			r.After = m.Seq
		}
		if !end.More {
			return r.After, nil
		}
	}
}

// lasts asks for the last messages of subjects, a page at a time. The pages go by the subjects,
// so that what is published meanwhile moves nothing from one to another.
func (p *person) lasts(ctx context.Context, c *Conn, filter string, wanted func(subject string) bool) ([]Stored, error) {
	var all []Stored
	for r := (Read{What: ReadLasts, Subject: filter}); ; {
		list, end, err := p.ask(ctx, c, r)
		if err != nil {
			return nil, err
		}
		for _, m := range list {
			if wanted(m.Subject) {
				all = append(all, m)
			}
		}
		if !end.More || end.Next <= r.Past {
			return all, nil
		}
		r.Past = end.Next
	}
}

// ask sends a Read, several times if it is not answered, and returns the answer as a whole.
func (p *person) ask(ctx context.Context, c *Conn, r Read) (list []Stored, end ReadEnd, err error) {
	err = c.Permitted(ctx, p.subject, func(ctx context.Context) error {
		return Patiently(ctx, func(ctx context.Context) (err error) {
			list, end, err = p.try(ctx, c, r)
			return err
		})
	})
	return list, end, p.explained(err)
}

// explained says in the person's words what is missing where nothing answers.
func (p *person) explained(err error) error {
	if errors.Is(err, nats.ErrNoResponders) {
		return ErrRunnerDown
	}
	return err
}

// try sends a Read once. An answer of which a part is missing counts as none: nothing of it is
// handed on, so that asking again, of whichever runner, gives each message once. It listens in an
// inbox of its own, where a late answer to an earlier try does not come.
func (p *person) try(ctx context.Context, c *Conn, r Read) (list []Stored, end ReadEnd, err error) {
	data, err := json.Marshal(r)
	if err != nil {
		return nil, end, err
	}
	inbox := c.NC.NewInbox()
	answers := make(chan *nats.Msg, answerRoom) // the server's own words are told from those of a publisher here
	sub, err := c.NC.ChanSubscribe(inbox, answers)
	if err != nil {
		return nil, end, err
	}
	defer func() { _ = sub.Unsubscribe() }()
	if err := c.NC.PublishRequest(p.subject, inbox, data); err != nil {
		return nil, end, err
	}
	for {
		select {
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return nil, end, errLate
			}
			return nil, end, ctx.Err()
		case m := <-answers:
			if Number(m, "Nats-Sequence") > 0 {
				list = append(list, fetched(m))
				continue
			}
			if err := endOf(m, &end); err != nil {
				return nil, end, err
			}
			if end.Messages != len(list) {
				return nil, end, errLate
			}
			return list, end, nil
		}
	}
}

// endOf reads the end of an answer, or the error that stands for one.
func endOf(m *nats.Msg, end *ReadEnd) error {
	if len(m.Data) == 0 && m.Header.Get("Status") == "503" {
		return nats.ErrNoResponders
	}
	switch m.Header.Get(micro.ErrorCodeHeader) {
	case "":
		return json.Unmarshal(m.Data, end)
	case "404":
		return ErrNotFound
	case "429", "500":
		return fmt.Errorf("%s: %w", Said(m), errLate)
	}
	return errors.New(Said(m))
}

// Said returns the reasons for which a micro service refused a request, as one line.
func Said(m *nats.Msg) string {
	var r struct {
		Errors []struct{ Field, Reason string }
	}
	if json.Unmarshal(m.Data, &r) != nil || len(r.Errors) == 0 {
		return wire.OneLine(m.Header.Get(micro.ErrorHeader))
	}
	var reasons []string
	for _, e := range r.Errors {
		reasons = append(reasons, strings.TrimSpace(e.Field+" "+e.Reason))
	}
	return strings.Join(reasons, "; ")
}
