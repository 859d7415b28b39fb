package api

import (
	"errors"
	"net/http"
	"strconv"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/requests"
	"github.com/pfl-forge/pfl-forge/document"
)

// changePages are the parameters of a change. They have the names of the fields of document.DiffRequest, so that an error of a runner
// names the parameter as well.
var changePages = []Query{
	{"task", "whose change; may be left out of an intent with one task", false},
	{"step", "implement, execute or rebase; without it any", false},
	{"attempt", "the number of the attempt; without it the newest that changed something", false},
	{"stat", "true leaves out the lines", false},
	{"after", "next of the answer before", false},
}

// diff answers with a page of the change of an attempt. That there is none, and that what is stored is not the change of the
// attempt, are told apart: the second is for an operator to look into.
func (c *call) diff() error {
	q := c.r.URL.Query()
	ask := document.DiffRequest{Intent: c.intent, Task: forge.TaskID(q.Get("task")), Step: forge.Step(q.Get("step")), After: q.Get("after")}
	if text, given := q["attempt"]; given {
		var err error
		if ask.Attempt, err = strconv.Atoi(text[0]); err != nil || ask.Attempt == 0 {
			return wrong("attempt", "is not a whole number from 1 on")
		}
	}
	if text, given := q["stat"]; given {
		if text[0] != "true" && text[0] != "false" {
			return wrong("stat", "is neither true nor false")
		}
		ask.Stat = text[0] == "true"
	}
	found, err := c.api.cfg.Bus.Submissions.Diff(c.r.Context(), c.project, c.api.cfg.Account, ask)
	if e, ok := errors.AsType[*requests.RequestError](err); ok && (e.Code == http.StatusNotFound || e.Code == http.StatusConflict) {
		p := problem(e.Code, "there is no such change")
		if e.Code == http.StatusConflict {
			p.Detail = "the change that is stored is not shown"
		}
		p.Errors = e.Fields
		return p
	}
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, found)
}
