package overhttp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"

	"github.com/nats-io/nuid"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/requests"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/internal/plainjson"
	"github.com/pfl-forge/pfl-forge/messages"
)

// ErrProject says that what is about the whole project cannot be asked for by HTTP.
var ErrProject = errors.New("the whole project cannot be asked by HTTP: name the intents, or use an account of NATS (--server tls://...)")

// Ask asks for an intent, or for what a person wants of one, and returns the
// ruling. Its Decision is empty if no runner has decided yet. The error of a
// request of which it is not known whether it was done says how to ask again.
func (c *Client) Ask(ctx context.Context, ev forge.Event) (forge.Ruling, error) {
	if ev.To.IsProject() {
		return forge.Ruling{}, ErrProject
	}
	r, err := c.asking(ev)
	if err != nil {
		return forge.Ruling{}, err
	}
	body, unsure, err := c.do(ctx, r)
	ruling := forge.Ruling{EventID: r.key, Intent: ev.To.Intent}
	refused, answered := errors.AsType[*Refusal](err)
	_, again := c.again(err)
	switch _, submits := ev.Message.(*forge.Submit); {
	case answered && (!unsure || !again && !refused.unsure()): // what was sent before would be known
		return ruled(ruling, refused)
	case err != nil && unsure:
		return ruling, unknown(err, ev.To.Intent, submits)
	case err != nil:
		return ruling, err
	}
	var done requests.Accepted
	if err := json.Unmarshal(body, &done); err != nil {
		return ruling, garbage("the answer of the server is not understood: %v", err)
	}
	switch {
	case done.Result == "accepted":
		ruling.Reason = "waiting for a runner to decide"
	case done.Result == "known" && !unsure:
		ruling.Decision, ruling.Reason = forge.Ignored, "it was done before"
	default: // what was sent before, and is known now, was ours
		ruling.Decision = forge.Applied
	}
	return ruling, nil
}

// unknown returns the error of a request of which it is not known whether it was done, with
// what to do: an intent is stored once by its id, and a act that is typed again is another
// one. The gateway's own advice is for programs, which have the key of their request.
func unknown(err error, id forge.IntentID, submits bool) error {
	if r, ok := errors.AsType[*Refusal](err); ok {
		text := r.reason()
		if strings.Contains(text, "Idempotency-Key") {
			text = "the gateway had no answer of a runner"
		}
		err = errors.New(text)
	}
	if submits {
		return fmt.Errorf("%w; it is not known whether %s was stored: create it again by this id, and it is stored once", err, id)
	}
	return fmt.Errorf("%w; it is not known whether this was done: see pfl-forge show %s before you ask again", err, id)
}

// ruled returns the ruling that a refusal is. There are two of the rules: the intent does not allow
// this now, and a quota has no room. They are told like those that come over NATS, where they are
// rulings. All others are errors: they are about the request or its sender, and no rule was asked.
func ruled(ruling forge.Ruling, r *Refusal) (forge.Ruling, error) {
	quota := r.Status == http.StatusTooManyRequests && len(r.Errors) > 0
	if r.Status != http.StatusConflict && !quota {
		return ruling, r
	}
	ruling.Decision, ruling.Reason = forge.Refused, r.reason()
	if len(r.Errors) > 0 {
		ruling.Field = r.Errors[0].Field
	}
	if quota {
		ruling.Reason = r.Error()
	}
	return ruling, nil
}

// asking returns the request for an event. Its key is the same however often it
// is sent, and another one for each event: a person who wants the same twice
// has said it twice. An intent has no key, since its id would follow from that;
// it is known by the id that it has, together with its content.
func (c *Client) asking(ev forge.Event) (r *request, err error) {
	if submit := forge.As[*forge.Submit](ev.Message); submit != nil {
		r = &request{method: http.MethodPost, address: c.path("intents")}
		r.body, err = submission(&submit.Intent)
		return r, err
	}
	verb := messages.Verb(ev.Message)
	if _, known := acts[verb]; !known {
		return nil, fmt.Errorf("%q does not work by HTTP: use an account of NATS (--server tls://...)", verb)
	}
	r = &request{method: http.MethodPost, address: c.path("intents", string(ev.To.Intent), verb), key: nuid.Next()}
	if m := forge.As[*forge.Answer](ev.Message); m != nil { // the first question has the number 0, which is not left out
		c.mu.Lock()
		question := cmp.Or(c.raw[m.Question], m.Question)
		c.mu.Unlock()
		r.body, err = json.Marshal(map[string]any{"index": m.Index, "question": question, "answer": m.Answer})
		return r, err
	}
	r.body, err = plainjson.Marshal(ev.Message)
	return r, err
}

// acts are the verbs that the API has.
var acts = func() map[string]bool {
	all := map[string]bool{}
	for _, verb := range requests.Acts() {
		all[verb] = true
	}
	return all
}()

// submission returns an intent as systems submit it: with the fields that a
// sender may set, and its id. Who asks, and when, is for the gateway to say. A
// field that the table of package document gains is sent by itself. Error: a
// field that the API does not take, which is better than an intent without it.
func submission(in *forge.Intent) ([]byte, error) {
	body := map[string]any{"id": in.ID}
	for _, f := range document.FieldsBy(document.Systems) {
		value := reflect.ValueOf(f.Of(in)).Elem()
		if value.IsZero() || f.Name == "source" {
			continue
		}
		body[f.Name] = value.Interface()
	}
	if in.Goal != nil {
		return nil, errors.New("goal: its options are not sent by HTTP; use an account of NATS (--server tls://...)")
	}
	if len(in.Criteria) > 0 {
		var criteria []any
		for _, one := range document.CriteriaOf(in.Criteria, in.Checks) {
			text, words := one.Short()
			switch {
			case words:
				criteria = append(criteria, text)
			case one.Command != "":
				return nil, errors.New("criteria: a command is not sent by HTTP; name a check of the project")
			default:
				criteria = append(criteria, map[string]string{"check": one.Check})
			}
		}
		body["criteria"] = criteria
	}
	return json.Marshal(body)
}
