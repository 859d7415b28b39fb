package requests

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/nats-io/nats.go/micro"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
	"github.com/pfl-forge/pfl-forge/document"
)

// costs answers with a document.Costs: what the agents of a project used. It answers 400 for a request
// that names a field wrong, and 503 while the journals are still being read.
func (e *endpoints) costs(ctx context.Context, from subjects.Sender, r micro.Request) (any, error) {
	var req document.CostsRequest
	err := readRequest(r.Data(), func(o *jsonObject) {
		o.text("by", (*string)(&req.By))
		o.read("since", &req.Since, timeExample)
		o.read("until", &req.Until, timeExample)
		o.only("by", "since", "until")
		*o.errs = append(*o.errs, req.Check()...)
	})
	if err != nil {
		return nil, err
	}
	c, err := e.cfg.Costs(ctx, from.Project, req)
	if refused, ok := errors.AsType[*RequestError](err); ok {
		return nil, &errCode{strconv.Itoa(refused.Code), refused.Fields}
	}
	c.Bound()
	return c, err
}

// Costs asks a runner what the agents of a project used, as List does, and returns a document.Costs.
func (ss *Submissions) Costs(ctx context.Context, project forge.ProjectID, gateway string, r document.CostsRequest) (json.RawMessage, error) {
	return ss.look(ctx, project, gateway, subjects.VerbCosts, r)
}
