package requests

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/internal/conn"
	"github.com/pfl-forge/pfl-forge/bus/internal/streams"
	"github.com/pfl-forge/pfl-forge/bus/internal/wire"
	"github.com/pfl-forge/pfl-forge/bus/objects"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
)

const (
	// readService names these requests among a server's micro services.
	readService = "pfl-forge-read"
	// readsAtOnce bounds the reads that ask streams at the same time. What they hold in memory is
	// bounded with them: at most readSubjects messages each.
	readsAtOnce = 8
	// readsOpen bounds all reads that are not answered yet, and readsEach those of one person. Most
	// of them wait for something to happen: a command line that follows has one to three.
	readsOpen, readsEach = 1000, 50
	// readTime bounds the work for one read, the wait for a message apart. A
	// stream without a leader takes it up, and the person asks again.
	readTime = conn.RequestTimeout
	// readMessages, readBytes and readSubjects bound one answer; a single message may be larger.
	readMessages, readBytes, readSubjects = conn.BatchSize, 256 << 10, 100
	// maxReadRequest bounds the request itself, in bytes.
	maxReadRequest = 4 << 10
	// readAgain is how long a message that was published may take until it can be read.
	readAgain = 500 * time.Millisecond
)

// reads answers people's requests to read streams: with messages of the project alone that the
// subject names, which the server has checked, and never with more than a bounded piece at a time.
//
// Whoever asks can be many, slow or malicious. So a request is parsed strictly and never becomes
// a stream's name or a subject without having been checked token by token; reads that ask streams
// are few at a time, and their time is bounded; reads that wait hold nothing but a subscription;
// one person has a share of all; and what is too much is refused at once, and not queued.
type reads struct {
	*endpoints

	idle func(context.Context, forge.ProjectID) (bool, error)
	// refused counts the reads that are refused, by the reason.
	refused func(reason string)
	working chan struct{}

	mu   sync.Mutex
	open int
	each map[string]int // by person
}

// The reasons for which reads are refused.
const (
	RefusedBusy    = "busy"
	RefusedRequest = "request"
)

// Counting by these alone keeps a metric from growing with the requests, however they are made up.

// ReadsConfig gives ServeReads what it does not read itself.
type ReadsConfig struct {
	// Idle reports whether all events of a project are decided.
	Idle func(context.Context, forge.ProjectID) (bool, error)
	// Refused, if not nil, is told why a read is refused: RefusedBusy or RefusedRequest.
	Refused func(reason string)
}

// ServeReads answers people's reads until ctx ends, as a micro service: those of one project
// each. Several processes share them. It reads and answers no more at a time than a runner can do
// beside its decisions, and refuses the rest with the code 429.
func (ss *Submissions) ServeReads(ctx context.Context, cfg ReadsConfig) error {
	rd := &reads{
		endpoints: &endpoints{conn: ss.conn}, idle: cfg.Idle, refused: cfg.Refused,
		working: make(chan struct{}, readsAtOnce), each: map[string]int{},
	}
	if rd.refused == nil {
		rd.refused = func(string) {}
	}
	return rd.serve(ctx, readService, "read what is of a project", endpoint{
		name: subjects.VerbRead, subject: subjects.APIRead, about: "read, subject, content, after, since, past, wait; answers messages, and their end",
		handle: rd.take,
	})
}

// The server has checked that the sender may publish on the subject, and nothing else: the person
// and the project in it are believed, and whatever else a request says is not.

// take begins to answer a read, or refuses it at once: it does not wait.
func (rd *reads) take(serving context.Context, r micro.Request) {
	from, err := subjects.ParseAPI(r.Subject())
	if replyTo(from, r) == "" {
		rd.refused(RefusedRequest)
		rd.conn.Log.WarnContext(serving, "ignored a read whose sender wants no answer in an own inbox", "subject", r.Subject())
		return
	}
	if err != nil {
		rd.end(r, conn.ReadEnd{}, bad("", "%v", err))
		return
	}
	if !rd.enter(from.Name) {
		rd.end(r, conn.ReadEnd{}, &errCode{"429", []RefusedField{{Reason: "too much is read at once; try again"}}})
		return
	}
	begun := rd.running.begin(func() {
		defer rd.leave(from.Name)
		end, err := rd.read(serving, from.Project, r)
		rd.end(r, end, err)
	})
	if !begun {
		rd.leave(from.Name)
	}
}

// enter counts a read of a person; false if there are too many.
func (rd *reads) enter(person string) bool {
	rd.mu.Lock()
	defer rd.mu.Unlock()
	if rd.open >= readsOpen || rd.each[person] >= readsEach {
		return false
	}
	rd.open++
	rd.each[person]++
	return true
}

// leave is the reverse of enter.
func (rd *reads) leave(person string) {
	rd.mu.Lock()
	defer rd.mu.Unlock()
	rd.open--
	if rd.each[person]--; rd.each[person] == 0 {
		delete(rd.each, person)
	}
}

// end sends the end of an answer, or the error that takes its place, and counts what is refused.
// Messages that were sent before an error are worthless to the person, who asks again.
func (rd *reads) end(r micro.Request, end conn.ReadEnd, err error) {
	if code, ok := errors.AsType[*errCode](err); ok && code.code == "429" {
		rd.refused(RefusedBusy)
	} else if ok && code.code == "400" {
		rd.refused(RefusedRequest)
	}
	if err := rd.respond(r, end, err); err != nil {
		rd.conn.Log.Warn("cannot answer a read", "subject", r.Subject(), "error", err)
	}
}

// reading is a read that was found to be in order, and the state of its answer.
//
// The stream is not the person's to say, and the bucket is set for objects only: both follow from
// the subject, and decide by which rule a message is one of the project.
type reading struct {
	conn.Read

	project forge.ProjectID
	stream  string
	bucket  streams.Bucket // of objects; otherwise empty
	answer  string         // the subject
	sent    int
}

// read answers a read with its messages, and returns what ends them.
func (rd *reads) read(serving context.Context, project forge.ProjectID, r micro.Request) (end conn.ReadEnd, err error) {
	q := reading{project: project, answer: r.Reply()}
	if q.Read, err = parseRead(r.Data()); err != nil {
		return end, err
	}
	if err := q.place(); err != nil {
		return end, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(serving), readTime+conn.ReadWait)
	defer cancel()
	switch q.What {
	case conn.ReadIdle:
		err = rd.work(ctx, func(ctx context.Context) (err error) {
			end.Idle, err = rd.idle(ctx, project)
			return err
		})
	case conn.ReadNext:
		end.More, err = rd.next(ctx, serving, &q)
	case conn.ReadLasts:
		err = rd.work(ctx, func(ctx context.Context) error {
			list, next, err := rd.conn.LastsPage(ctx, q.stream, q.Subject, q.Past, q.mine, readSubjects)
			for i := range list {
				err = errors.Join(err, rd.pass(ctx, &q, list[i]))
			}
			end.More, end.Next = next != "", next
			return err
		})
	default:
		err = rd.work(ctx, func(ctx context.Context) error {
			one := rd.conn.Last
			if q.What == conn.ReadFirst {
				one = rd.conn.First
			}
			m, err := one(ctx, q.stream, q.Subject)
			if err != nil {
				return err
			}
			return rd.pass(ctx, &q, m)
		})
	}
	if errors.Is(err, conn.ErrNotFound) {
		err = &errCode{"404", []RefusedField{{"subject", "has no message"}}}
	}
	end.Messages = q.sent
	return end, err
}

// work calls f when few enough reads are at work, within its time. Who waits for a message is not
// at work, so that people who follow do not keep others from reading.
func (rd *reads) work(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	select {
	case rd.working <- struct{}{}:
		defer func() { <-rd.working }()
		return f(ctx)
	case <-ctx.Done():
		return &errCode{"429", []RefusedField{{Reason: "too much is read at once; try again"}}}
	}
}

// Two kinds of reads begin at a position that the person says. A sequence is one of the whole
// stream, and tells nothing of other projects: only messages that the filter matches are looked
// for after it. A subject to go on past is only compared with those of the project.

// next passes on the messages after a sequence. Where there is none and the person waits, so
// does it, until one is published. It reports whether more are left.
func (rd *reads) next(ctx, serving context.Context, q *reading) (more bool, err error) {
	filter := q.Subject
	if q.Content != "" {
		if filter, err = rd.chunks(ctx, q); err != nil {
			return false, err
		}
	}
	look := func() error {
		return rd.work(ctx, func(ctx context.Context) (err error) {
			more, err = rd.batch(ctx, q, filter)
			return err
		})
	}
	if err = look(); err != nil || q.sent > 0 || !q.Wait {
		return more, err
	}
	return more, rd.wait(ctx, serving, filter, func() (bool, error) { err := look(); return q.sent > 0, err })
}

// batch passes on the messages that there are, as many as an answer may have.
func (rd *reads) batch(ctx context.Context, q *reading, filter string) (more bool, err error) {
	query := &conn.Query{Batch: readMessages, MaxBytes: readBytes, Next: filter}
	if q.After == 0 && !q.Since.IsZero() {
		query.Since = &q.Since
	} else {
		query.Seq = q.After + 1
	}
	a, err := rd.conn.Get(ctx, q.stream, query, func(m conn.Stored) error { return rd.pass(ctx, q, m) })
	return a.More, err
}

// A wait costs a subscription to the very filter that was asked for, so that no stream is asked
// again and again; a person asks again soon, if the server has not told us of a message.

// wait calls look after a message was published that the filter matches, until it has found
// one, or the person has waited long enough, or another runner has to take over. A message may
// be published and refused, and one that was published may be readable a moment later only.
func (rd *reads) wait(ctx, serving context.Context, filter string, look func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, conn.ReadWait)
	defer cancel()
	published := make(chan *nats.Msg, 1)
	sub, err := rd.conn.NC.ChanSubscribe(filter, published)
	if err != nil {
		return err
	}
	defer func() { _ = sub.Unsubscribe() }()
	if err := rd.conn.NC.FlushWithContext(ctx); err != nil {
		return err
	}
	for until := time.Now(); ; { // at least once: it may have come before we listened
		for attempt := 0; ; attempt++ {
			if found, err := look(); found || err != nil {
				return err
			}
			if time.Now().After(until) || conn.Sleep(ctx, conn.Backoff(attempt)) != nil {
				break
			}
		}
		select {
		case <-published:
			until = time.Now().Add(readAgain)
		case <-ctx.Done():
			return nil
		case <-serving.Done():
			return nil
		}
	}
}

// pass sends a message on as it is stored. One that the server does not take, because it is too
// large together with what the server said of it, is sent without its content, which no reader
// takes for anything.
func (rd *reads) pass(ctx context.Context, q *reading, m conn.Stored) error {
	if q.Content == "" && !q.mine(m.Subject) {
		return fmt.Errorf("message %d of %s is on %s, which is not of project %s", m.Seq, q.stream, m.Subject, q.project)
	}
	if q.bucket != "" && q.Content == "" {
		newest, _, err := objects.Newest(ctx, rd.conn, q.bucket, m)
		if errors.Is(err, conn.ErrNotFound) {
			return nil
		} else if err != nil {
			return err
		}
		m = newest
	}
	q.sent++
	err := rd.conn.NC.PublishMsg(&nats.Msg{Subject: q.answer, Header: m.Header, Data: m.Data})
	if errors.Is(err, nats.ErrMaxPayload) {
		rd.conn.Log.WarnContext(ctx, "a message is too large to be passed on", "stream", q.stream, "seq", m.Seq, "subject", m.Subject)
		err = rd.conn.NC.PublishMsg(&nats.Msg{Subject: q.answer, Header: m.Stamps()})
	}
	return err
}

// chunks returns the subject of an object's content, if it has that content now.
func (rd *reads) chunks(ctx context.Context, q *reading) (subject string, err error) {
	err = rd.work(ctx, func(ctx context.Context) error {
		m, err := rd.conn.Last(ctx, q.stream, q.Subject)
		if err != nil {
			return err
		}
		_, info, err := objects.Newest(ctx, rd.conn, q.bucket, m)
		if err == nil && (info.Deleted || info.NUID != q.Content) {
			err = conn.ErrNotFound
		}
		if err != nil {
			return err
		}
		subject = q.bucket.Chunk(q.Content)
		return nil
	})
	return subject, err
}

// replyTo returns where a request is answered: in the inbox of its sender, or nowhere.
func replyTo(from subjects.Sender, r micro.Request) string {
	name := from.Name
	if from.Named && name == "" {
		name = subjects.None // nobody's
	}
	return wire.InboxOf(name, r.Reply())
}
