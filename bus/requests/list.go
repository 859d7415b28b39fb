package requests

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go/micro"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/internal/conn"
	"github.com/pfl-forge/pfl-forge/bus/internal/jsonobject"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
	"github.com/pfl-forge/pfl-forge/document"
)

// listed is how many intents a list has unless the request says otherwise, mostListed how many it
// can ask for.
const listed, mostListed = 100, 500

// timeExample says what a time has to be.
const timeExample = "a time such as 2026-03-01T12:00:00Z"

// list answers with a document.Listed: the intents of a project by their ids, a
// page at a time.
func (e *endpoints) list(ctx context.Context, from subjects.Sender, r micro.Request) (any, error) {
	var filter document.Filter
	var after, agent string
	limit := listed
	err := readRequest(r.Data(), func(o *jsonobject.Object) {
		o.List("status", &filter.Status)
		o.List("waiting", &filter.Waiting)
		o.List("type", &filter.Type)
		o.List("labels", &filter.Labels)
		o.Text("requester", &filter.Requester)
		if o.Has("priority") {
			filter.Priority = new(int)
			o.Whole("priority", filter.Priority)
		}
		o.Text("agent", &agent)
		o.Read("since", &filter.Since, timeExample)
		o.Text("after", &after)
		o.Whole("limit", &limit)
		o.Only("status", "waiting", "type", "labels", "requester", "priority", "agent", "since", "after", "limit")
		if limit < 1 || limit > mostListed {
			o.AddError("limit", fmt.Sprintf("is %d; it can be 1 to %d", limit, mostListed))
		}
		*o.Errs = append(*o.Errs, filter.Check()...)
	})
	if err != nil {
		return nil, err
	}
	selects := filter.Selects
	if agent != "" {
		if e.cfg.By == nil {
			return nil, &errCode{"400", []RefusedField{{"agent", "is not supported by this runner"}}}
		}
		var by map[forge.IntentID]bool
		if err := e.readLarge(ctx, 0, forge.Key{Project: from.Project}, func() (err error) {
			by, err = e.cfg.By(ctx, from.Project, agent)
			return err
		}); err != nil {
			return nil, err
		}
		selects = func(s *forge.Summary) bool { return filter.Selects(s) && by[s.Key.Intent] }
	}
	all, err := e.lists.Summaries(ctx, from.Project)
	if err != nil {
		return nil, err
	}
	result := document.Listed{Intents: []document.State{}}
	for i := range all {
		s := &all[i]
		if strings.Compare(string(s.Key.Intent), after) <= 0 || !selects(s) {
			continue
		}
		if len(result.Intents) == limit {
			result.Next = result.Intents[limit-1].Intent
			break
		}
		result.Intents = append(result.Intents, document.StateOf(s))
	}
	return result, nil
}

// show answers with a document.Detail, everything that is known of an intent. Of one that
// has become long it is a page: the newest of everything, or a part from a place on.
func (e *endpoints) show(ctx context.Context, from subjects.Sender, r micro.Request) (any, error) {
	var id string
	var page document.Page
	err := readRequest(r.Data(), func(o *jsonobject.Object) {
		o.Text("intent", &id)
		o.Text("part", &page.Part)
		o.Whole("after", &page.After)
		o.Only("intent", "part", "after")
		if _, err := forge.ParseIntentID(id); err != nil {
			o.AddError("intent", err.Error())
		}
		*o.Errs = append(*o.Errs, page.Check()...)
	})
	if err != nil {
		return nil, err
	}
	v, work, err := e.cfg.Report(ctx, forge.Key{Project: from.Project, Intent: forge.IntentID(id)})
	if errors.Is(err, conn.ErrNotFound) {
		return nil, &errCode{"404", []RefusedField{{"intent", fmt.Sprintf("there is no intent %q in project %q", id, from.Project)}}}
	}
	if err != nil {
		return nil, err
	}
	return document.DetailOf(&v, work, page), nil
}
