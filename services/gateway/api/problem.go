package api

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/pfl-forge/pfl-forge/bus/requests"
)

// Problem answers a request that was not done, as RFC 9457 has it.
type Problem struct {
	// Title is the status in words, always the same for it.
	Title string `json:"title"`
	// Status is that of the answer.
	Status int `json:"status"`
	// Detail says what is wrong, and what to do where something can be done.
	Detail string `json:"detail,omitempty"`
	// Errors says what is wrong, field by field. An empty field stands for the whole request.
	Errors []requests.RefusedField `json:"errors,omitempty"`
	// Request is the id of the request, which the gateway logs.
	Request string `json:"request"`

	// retryAfter is told as Retry-After; 0: it is not.
	retryAfter time.Duration
	// allow is told as Allow: the methods of the address.
	allow string
	// challenge follows the scheme in WWW-Authenticate.
	challenge string
}

func (p *Problem) Error() string { return p.Title + ": " + p.Detail }

// IsFinal reports whether the same request would be refused again, whenever it
// is made: neither a limit is in the way, nor something that is down.
func (p *Problem) IsFinal() bool {
	return p.Status < http.StatusInternalServerError && p.Status != http.StatusTooManyRequests
}

// problem returns a Problem without fields.
func problem(status int, detail string) *Problem {
	return &Problem{Title: http.StatusText(status), Status: status, Detail: detail}
}

// wrong returns the Problem for a mistake in one field.
func wrong(field, reason string) *Problem {
	p := problem(http.StatusBadRequest, "the request is not understood")
	p.Errors = []requests.RefusedField{{Field: field, Reason: reason}}
	return p
}

const (
	// runnerPause is when to ask again where no runner answers.
	runnerPause = 5 * time.Second
	// ratePause is when to ask again after too many requests.
	ratePause = time.Second
)

// problemOf returns an error of a route, which reads or does something, as its sender is
// told. What is no mistake of theirs is told without its words, which are in the log.
func problemOf(err error, read bool) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	if e, ok := errors.AsType[*requests.RequestError](err); ok && e.Code < http.StatusInternalServerError {
		p := problem(e.Code, details[e.Code])
		p.Errors, p.retryAfter = e.Fields, e.RetryAfter
		return p
	}
	p := problem(http.StatusServiceUnavailable, "it is not known whether this was done: ask again, with the same Idempotency-Key")
	p.retryAfter = runnerPause
	if read {
		p.Detail = "it cannot be read now: ask again"
		if e, ok := errors.AsType[*requests.RequestError](err); ok && e.Code == http.StatusServiceUnavailable { // a runner says why
			p.Errors = e.Fields
		}
	}
	switch {
	case errors.Is(err, requests.ErrRunnerDown):
		p.Detail = "no runner is up: nothing was done"
		if read {
			p.Detail = "no runner is up to answer it: ask again"
		}
	case errors.Is(err, context.Canceled):
		p.Detail = "the request was given up"
	}
	return p
}

// details has a sentence for each refusal of a runner.
var details = map[int]string{
	http.StatusBadRequest:      "the request is not understood",
	http.StatusNotFound:        "there is no such intent",
	http.StatusConflict:        "the intent does not allow this now",
	http.StatusTooManyRequests: "there are as many open intents as are allowed",
}

// write answers with the problem.
func (p *Problem) write(w http.ResponseWriter, request string) {
	p.Request = request
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	if p.retryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(p.retryAfter.Seconds()))))
	}
	if p.allow != "" {
		h.Set("Allow", p.allow)
	}
	if p.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", "Bearer"+p.challenge)
	}
	data, err := json.Marshal(p)
	if err != nil {
		p.Status, data = http.StatusInternalServerError, []byte("{}") // it has texts and numbers only
	}
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(data, '\n')) // whoever asked may have gone
}

// Barred reports whether an error says that the holder of a token may not do
// something in a project, or that the token does not count any more.
func Barred(err error) bool {
	p, ok := errors.AsType[*Problem](err)
	return ok && (p.Status == http.StatusUnauthorized || p.Status == http.StatusForbidden)
}

// FirstBarred returns the first of errors that is Barred; nil if none is.
func FirstBarred(errs []error) error {
	if i := slices.IndexFunc(errs, Barred); i >= 0 {
		return errs[i]
	}
	return nil
}
