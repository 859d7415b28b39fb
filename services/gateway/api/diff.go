package api

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/requests"
	"github.com/pfl-forge/pfl-forge/document"
)

// changePages are the parameters of a change. They have the names of the fields of
// document.DiffRequest, so that an error of a runner names the parameter as well.
var changePages = []Query{
	{"task", "whose change; may be left out of an intent with one task", false},
	{"step", "implement, execute or rebase; without it any", false},
	{"attempt", "the number of the attempt; without it the newest that changed something", false},
	{"since", "the number of a former attempt of the same task and step: shown is what the two changes do not have in common", false},
	{"whitespace", "off leaves out the lines that the change alters in white space alone, and counts them as hidden", false},
	{"stat", "true leaves out the lines", false},
	{"after", "next of the answer before", false},
}

// diff answers with a page of the change of an attempt. That there is none, and that what is
// stored is not the change of the attempt, are told apart: the second is for an operator to
// look into.
func (c *call) diff() error {
	q := c.r.URL.Query()
	ask := document.DiffRequest{
		Intent: c.intent, Task: forge.TaskID(q.Get("task")), Step: forge.Step(q.Get("step")), After: q.Get("after"), Whitespace: q.Get("whitespace"),
	}
	var err error
	if ask.Attempt, err = attempt(q, "attempt"); err != nil {
		return err
	}
	if ask.Since, err = attempt(q, "since"); err != nil {
		return err
	}
	if text, given := q["stat"]; given {
		if text[0] != "true" && text[0] != "false" {
			return wrong("stat", "is neither true nor false")
		}
		ask.Stat = text[0] == "true"
	}
	found, err := c.api.cfg.Bus.Submissions.Page(c.r.Context(), c.project, c.api.cfg.Account, string(c.route.Verb), ask)
	if err != nil {
		return inWords(err, "there is no such change", "the change that is stored is not shown")
	}
	return c.answer(http.StatusOK, found)
}

// transcriptPages are the parameters of a transcript, with the names of the fields of
// document.TranscriptRequest.
var transcriptPages = []Query{
	{"task", "whose attempt; may be left out where only one task has such attempts", false},
	{"step", "such as analyze, implement or review; without it any", false},
	{"attempt", "the number of the attempt; without it the newest, whether or not it has ended", false},
	{"after", "next of the answer before, or later, when an attempt was still running", false},
}

// transcript answers with a page of what was done in an attempt.
func (c *call) transcript() error {
	q := c.r.URL.Query()
	ask := document.TranscriptRequest{Intent: c.intent, Task: forge.TaskID(q.Get("task")), Step: forge.Step(q.Get("step")), After: q.Get("after")}
	var err error
	if ask.Attempt, err = attempt(q, "attempt"); err != nil {
		return err
	}
	found, err := c.api.cfg.Bus.Submissions.Page(c.r.Context(), c.project, c.api.cfg.Account, string(c.route.Verb), ask)
	if err != nil {
		return inWords(err, "there is no such transcript", "the transcript has no such position")
	}
	return c.answer(http.StatusOK, found)
}

// timelinePages are the parameters of a timeline.
var timelinePages = []Query{
	{"after", "how many records to pass over: next of the answer before", false},
	{"limit", "how many records, at most 500; 100 if it is left out", false},
}

// timeline answers with a page of the records of an intent.
func (c *call) timeline() error {
	q := c.r.URL.Query()
	ask := document.TimelineRequest{Intent: c.intent}
	if text, given := q["after"]; given {
		var err error
		if ask.After, err = strconv.Atoi(text[0]); err != nil {
			return wrong("after", "is not a whole number")
		}
	}
	var err error
	if ask.Limit, err = attempt(q, "limit"); err != nil {
		return err
	}
	found, err := c.api.cfg.Bus.Submissions.Page(c.r.Context(), c.project, c.api.cfg.Account, string(c.route.Verb), ask)
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, found)
}

// auditPages are the parameters of an audit.
var auditPages = []Query{
	{"intent", "only this intent", false},
	{"actor", "the name of a person, system or worker", false},
	{"action", "one of: " + strings.Join(document.AuditActions, ", "), true},
	{"since", "only what was decided from then on, such as 2026-03-01T12:00:00Z", false},
	{"until", "only what was decided before", false},
	{"after", "next of the answer before", false},
	{"limit", "how many events, at most 1000; 100 if it is left out", false},
}

// audit answers with a page of who did what in a project.
func (c *call) audit() error {
	q := c.r.URL.Query()
	ask := document.AuditRequest{Intent: forge.IntentID(q.Get("intent")), Actor: q.Get("actor"), Action: q["action"], After: q.Get("after")}
	for name, into := range map[string]*time.Time{"since": &ask.Since, "until": &ask.Until} {
		text, given := q[name]
		if !given {
			continue
		}
		var err error
		if *into, err = time.Parse(time.RFC3339, text[0]); err != nil {
			return wrong(name, "is not a time such as 2026-03-01T12:00:00Z")
		}
	}
	var err error
	if ask.Limit, err = attempt(q, "limit"); err != nil {
		return err
	}
	found, err := c.api.cfg.Bus.Submissions.Page(c.r.Context(), c.project, c.api.cfg.Account, string(c.route.Verb), ask)
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, found)
}

// attempt returns the whole number of a parameter, such as that of an attempt; 0 for none.
func attempt(q url.Values, parameter string) (int, error) {
	text, given := q[parameter]
	if !given {
		return 0, nil
	}
	n, err := strconv.Atoi(text[0])
	if err != nil || n == 0 {
		return 0, wrong(parameter, "is not a whole number from 1 on")
	}
	return n, nil
}

// inWords returns the error of a runner with a sentence for what is missing, and for what
// cannot be shown. The fields say more.
func inWords(err error, missing, conflict string) error {
	e, ok := errors.AsType[*requests.RequestError](err)
	if !ok || e.Code != http.StatusNotFound && e.Code != http.StatusConflict {
		return err
	}
	p := problem(e.Code, missing)
	if e.Code == http.StatusConflict {
		p.Detail = conflict
	}
	p.Errors = e.Fields
	return p
}
