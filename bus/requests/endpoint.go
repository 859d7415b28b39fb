package requests

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"golang.org/x/sync/semaphore"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/internal/conn"
	"github.com/pfl-forge/pfl-forge/bus/internal/jsonobject"
	"github.com/pfl-forge/pfl-forge/bus/internal/wire"
	"github.com/pfl-forge/pfl-forge/bus/journal"
	"github.com/pfl-forge/pfl-forge/bus/packed"
	"github.com/pfl-forge/pfl-forge/bus/signed"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
	"github.com/pfl-forge/pfl-forge/bus/turns"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/document/figures"
	"github.com/pfl-forge/pfl-forge/document/setup"
	"github.com/pfl-forge/pfl-forge/document/whole"
)

const (
	// serviceName names the service among a server's micro services.
	serviceName = "pfl-forge"
	// serviceVersion is the version of the requests and answers, not of the
	// program.
	serviceVersion = "1.0.0"
	// requestsAtOnce bounds the requests that are answered at the same time.
	requestsAtOnce = 64
)

// Refused answers a request that is refused, beside an error code as HTTP has
// them: 400 for a mistake in the request, 404, 409 for a request that a runner
// refuses, 429 for one that it may accept later, 500.
type Refused struct {
	Errors []RefusedField `json:"errors"`
}

// RefusedField is one reason, a phrase that follows the field's name. An empty
// field stands for all of the request.
type RefusedField struct {
	Field  string `json:"field,omitempty"`
	Reason string `json:"reason"`
}

// ServeConfig gives Serve its sources. Lists and submissions need none but the
// connection.
type ServeConfig struct {
	// Report returns everything that is known of an intent, and what became of it, or ErrNotFound.
	Report func(context.Context, forge.Key) (forge.View, document.Work, error)
	// Diff returns the change of an attempt, all files of it. Errors:
	// ErrNotFound for an intent, and *RequestError.
	Diff func(context.Context, forge.ProjectID, document.DiffRequest) (document.Diff, error)
	// Transcript returns a page of what was done in an attempt, with the same errors.
	Transcript func(context.Context, forge.ProjectID, document.TranscriptRequest) (document.Transcript, error)
	// Costs adds up the usage of the agents of a project. Error: *RequestError.
	Costs func(context.Context, forge.ProjectID, document.CostsRequest) (document.Costs, error)
	// By returns the intents of a project that an agent works on or has worked
	// on. Error: *RequestError.
	By func(ctx context.Context, project forge.ProjectID, agent string) (map[forge.IntentID]bool, error)
	// Health tells how well the work of a project goes. Error: *RequestError.
	Health func(context.Context, forge.ProjectID, figures.HealthRequest) (figures.Health, error)
	// Queue tells the merge queue of a project. Error: *RequestError.
	Queue func(context.Context, forge.ProjectID, document.QueueRequest) (document.Queue, error)
	// Timeline returns a page of the records of an intent, with the same errors.
	Timeline func(context.Context, forge.ProjectID, document.TimelineRequest) (document.Timeline, error)
	// Audit returns a page of who did what in a project, with the same errors.
	Audit func(context.Context, forge.ProjectID, document.AuditRequest) (document.Audit, error)
	// Settings returns by which settings a project is worked on. Error: *RequestError.
	Settings func(context.Context, forge.ProjectID, setup.Request) (setup.InForce, error)
	// Whole returns an intent, or the list of all, as a whole, with the same errors.
	Whole func(context.Context, forge.ProjectID, whole.Request) (packed.Packed, error)
	// Turns returns how many calls of a project wait for their turn; nil: none.
	Turns func(context.Context, forge.ProjectID) (*turns.State, error)
	// Authors has submissions proven by the signatures of their systems; nil: nothing is.
	Authors *signed.Keys
}

// Serve answers other systems' requests at once, until ctx ends: submit, list, show and
// services, as a NATS micro service. Several processes share the requests.
func (ss *Submissions) Serve(ctx context.Context, cfg ServeConfig) error {
	e := &endpoints{
		conn: ss.conn, submissions: ss, lists: ss.journal.NewLists(), cfg: cfg, limit: 2 * conn.RequestTimeout,
		slots: make(chan struct{}, requestsAtOnce), large: semaphore.NewWeighted(largeAtOnce),
	}
	diff, transcript := page(e, compares, cfg.Diff), page(e, nil, cfg.Transcript)
	timeline, audit := page(e, nil, cfg.Timeline), page(e, alone[*document.AuditRequest], cfg.Audit)
	costs, settings := page(e, small[*document.CostsRequest], cfg.Costs), page(e, nil, cfg.Settings)
	all := page(e, nil, cfg.Whole)
	queue, health := page(e, small[*document.QueueRequest], cfg.Queue), page(e, small[*figures.HealthRequest], cfg.Health)
	return e.serve(ctx, serviceName, "ask for changes of repositories, and look at them",
		e.endpoint("submit", subjects.APISubmit, "an intent, as JSON, a CloudEvent or protobuf; answers project, intent, result", e.submit),
		e.endpoint("submit-from", subjects.APISubmitFrom, "submit, for systems that may speak for themselves only", e.submit),
		e.endpoint("list", subjects.APIListBy, "status, waiting, type, labels, requester, agent, since, limit, after, all optional; answers intents, next", e.list),
		e.endpoint("list-from", subjects.APIListFrom, "list, for systems", e.list),
		e.endpoint("show", subjects.APIShowBy, "intent, part and after, these two optional; answers everything that is known of it", e.show),
		e.endpoint("show-from", subjects.APIShowFrom, "show, for systems", e.show),
		e.endpoint("diff", subjects.APIDiffBy, "intent, and optional: task, step, attempt, since, whitespace, stat, after; answers the change of an attempt", diff),
		e.endpoint("diff-from", subjects.APIDiffFrom, "diff, for systems", diff),
		e.endpoint("transcript", subjects.APITranscriptBy, "intent, and optional: task, step, attempt, after; answers what was done in an attempt", transcript),
		e.endpoint("transcript-from", subjects.APITranscriptFrom, "transcript, for systems", transcript),
		e.endpoint("timeline", subjects.APITimelineBy, "intent, and optional: after, limit; answers its records, with attempts and waits", timeline),
		e.endpoint("timeline-from", subjects.APITimelineFrom, "timeline, for systems", timeline),
		e.endpoint("audit", subjects.APIAuditBy, "intent, actor, action, since, until, after, limit, all optional; answers who did what", audit),
		e.endpoint("audit-from", subjects.APIAuditFrom, "audit, for gateways", audit),
		e.endpoint("costs", subjects.APICostsBy, "by, since, until, all optional; answers what agents used", costs),
		e.endpoint("costs-from", subjects.APICostsFrom, "costs, for systems", costs),
		e.endpoint("settings", subjects.APISettingsBy, "nothing; answers by which settings the project is worked on", settings),
		e.endpoint("settings-from", subjects.APISettingsFrom, "settings, for systems", settings),
		e.endpoint("queue", subjects.APIQueueBy, "nothing, or an intent; answers the merge queue, and what keeps all work waiting", queue),
		e.endpoint("queue-from", subjects.APIQueueFrom, "queue, for systems", queue),
		e.endpoint("health", subjects.APIHealthBy, "weeks, optional; answers how the work went, by week", health),
		e.endpoint("health-from", subjects.APIHealthFrom, "health, for systems", health),
		e.endpoint("whole", subjects.APIWholeBy, "intent, after, records, all optional; answers an intent or the list as a whole, compressed", all),
		e.endpoint("whole-from", subjects.APIWholeFrom, "whole, for systems", all),
		e.endpoint("services", subjects.APIServicesBy, "brief, optional; answers known, services", e.services),
		e.endpoint("services-from", subjects.APIServicesFrom, "services, for systems", e.services),
	)
}

// endpoint is one kind of request of a micro service. about describes it for
// people who list those of a server.
type endpoint struct {
	name, subject, about string
	// handle is called with one request after the other, and does not wait for an answer.
	handle func(serving context.Context, r micro.Request)
}

// endpoint returns an endpoint of which several requests are answered at once.
func (e *endpoints) endpoint(name, subject, about string, answer answering) endpoint {
	return endpoint{name, subject, about, e.handler(answer)}
}

// endpoints is the state of one Serve: a micro service and its requests under way.
type endpoints struct {
	conn        *conn.Conn
	submissions *Submissions
	lists       *journal.Lists
	cfg         ServeConfig
	// slots has room for the requests that are answered at the same time.
	slots chan struct{}
	// gathers counts the requests for which services are asked right now.
	gathers atomic.Int32
	limit   time.Duration // for an answer
	running underWay
	// large has room for the changes and transcripts that are read at the same
	// time: one may take tens of megabytes.
	large *semaphore.Weighted
}

// underWay are the answers of one serve that are not sent yet. The library may hand over requests
// after the service was stopped: those are not begun.
type underWay struct {
	mu      sync.Mutex
	over    bool
	answers sync.WaitGroup
}

// begin starts an answer; false if serving is over.
func (u *underWay) begin(answer func()) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.over {
		u.answers.Go(answer)
	}
	return !u.over
}

// end waits for the answers that have begun.
func (u *underWay) end() {
	u.mu.Lock()
	u.over = true
	u.mu.Unlock()
	u.answers.Wait()
}

// serve registers a micro service with its endpoints and answers requests until ctx ends.
// It returns when the last answer is sent.
func (e *endpoints) serve(ctx context.Context, service, about string, list ...endpoint) error {
	svc, err := micro.AddService(e.conn.NC, micro.Config{Name: service, Version: serviceVersion, Description: about})
	if err != nil {
		return fmt.Errorf("serve requests: %w", err)
	}
	for _, one := range list {
		err := svc.AddEndpoint(one.name, micro.HandlerFunc(func(r micro.Request) { one.handle(ctx, r) }), micro.WithEndpointSubject(one.subject),
			micro.WithEndpointMetadata(map[string]string{"request": one.about}))
		if err != nil {
			return errors.Join(fmt.Errorf("serve %s: %w", one.name, err), svc.Stop())
		}
	}
	<-ctx.Done()
	err = svc.Stop()
	e.running.end()
	if err != nil && !errors.Is(err, nats.ErrConnectionClosed) {
		return fmt.Errorf("end the service: %w", err)
	}
	return nil
}

// answering returns the answer to a request, or an *errCode.
type answering func(context.Context, subjects.Sender, micro.Request) (any, error)

// errCode is an error that its sender is told, with a code as HTTP has them.
// Any other error is logged, and told as "try again".
type errCode struct {
	code   string
	fields []RefusedField
}

func (e *errCode) Error() string { return e.fields[0].Reason }

// bad returns the error for one mistake in a request.
func bad(field, format string, args ...any) error {
	return &errCode{"400", []RefusedField{{field, fmt.Sprintf(format, args...)}}}
}

// handler answers requests whose sender can be answered in an inbox, several at once.
func (e *endpoints) handler(answer answering) func(context.Context, micro.Request) {
	return func(serving context.Context, r micro.Request) {
		from, err := subjects.ParseAPI(r.Subject())
		if replyTo(from, r) == "" {
			e.conn.Log.WarnContext(serving, "ignored a request whose sender wants no answer in an own inbox", "subject", r.Subject())
			return
		}
		select {
		case e.slots <- struct{}{}:
		case <-serving.Done():
			return
		}
		begun := e.running.begin(func() {
			defer func() { <-e.slots }()
			ctx, cancel := context.WithTimeout(context.WithoutCancel(serving), e.limit)
			defer cancel()
			var result any
			if err == nil {
				result, err = answer(ctx, from, r)
			} else {
				err = bad("", "%v", err)
			}
			if err = e.respond(r, result, err); err != nil {
				e.conn.Log.WarnContext(ctx, "cannot answer a request", "subject", r.Subject(), "error", err)
			}
		})
		if !begun {
			<-e.slots
		}
	}
}

// respond publishes the answer itself: a micro.Request belongs to the library again as
// soon as its handler returned, and reading its state races with a later Error.
func (e *endpoints) respond(r micro.Request, result any, err error) error {
	msg := nats.NewMsg(r.Reply())
	if err != nil {
		code := &errCode{"500", []RefusedField{{Reason: "the request cannot be answered now; try again"}}}
		if known, ok := errors.AsType[*errCode](err); ok {
			code = known
		} else {
			e.conn.Log.Warn("cannot answer a request", "subject", r.Subject(), "error", err)
		}
		msg.Header.Set(micro.ErrorHeader, wire.OneLine(code.Error()))
		msg.Header.Set(micro.ErrorCodeHeader, code.code)
		result = Refused{Errors: code.fields}
	}
	msg.Data, err = json.Marshal(result)
	if err != nil {
		return err
	}
	return e.conn.NC.PublishMsg(msg)
}

// readRequest reads a JSON object, for which an empty request stands as well.
// The error is an *errCode with every mistake that read noted.
func readRequest(data []byte, read func(*jsonobject.Object)) error {
	if len(data) == 0 {
		data = []byte("{}")
	}
	var errs []forge.FieldError
	o, err := jsonobject.Parse(data, "", &errs)
	if err != nil {
		return bad("", "%v", err)
	}
	read(&o)
	refused := &errCode{code: "400"}
	for _, f := range errs {
		refused.fields = append(refused.fields, RefusedField{f.Field, f.Reason})
	}
	if len(errs) > 0 {
		return refused
	}
	return nil
}
