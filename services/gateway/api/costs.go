package api

import (
	"net/http"
	"net/url"
	"time"

	"github.com/pfl-forge/pfl-forge/document"
)

// costQueries are the parameters of costs, with the names of the fields of document.CostsRequest.
var costQueries = []Query{
	{"by", "what there is a row for: intent, task, step, agent, model, requester, type, project, or day, which it is if it is left out", false},
	{"since", "leaves out attempts that were decided on before, such as 2026-03-01T12:00:00Z", false},
	{"until", "leaves out attempts that were decided on then or later", false},
}

// costs answers with what the agents of a project used.
func (c *call) costs() error {
	q := c.r.URL.Query()
	ask := document.CostsRequest{By: document.CostGroup(q.Get("by"))}
	var err error
	if ask.Since, err = instant(q, "since"); err != nil {
		return err
	}
	if ask.Until, err = instant(q, "until"); err != nil {
		return err
	}
	found, err := c.api.cfg.Bus.Submissions.Page(c.r.Context(), c.project, c.api.cfg.Account, string(c.route.Verb), ask)
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, found)
}

// instant returns the time that a parameter names, zero for none.
func instant(q url.Values, parameter string) (time.Time, error) {
	text := q.Get(parameter)
	if text == "" {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, wrong(parameter, "is not a time such as 2026-03-01T12:00:00Z")
	}
	return at, nil
}
