package overhttp

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge/internal/term"
	"github.com/pfl-forge/pfl-forge/services/gateway/api"
)

// ErrNoIntent says that there is no such intent.
var ErrNoIntent = errors.New("there is no such intent")

// ErrLarge says that an intent is not told as a whole.
var ErrLarge = errors.New("is too large for one answer by HTTP; the gateway's console shows it page by page, at /console/ of its address")

// Refusal is the gateway's answer to a request that was not done.
type Refusal struct {
	api.Problem

	// RetryAfter is when to ask again; 0 if the gateway does not say.
	RetryAfter time.Duration
}

// Error tells the mistakes by their fields, or else the words of the gateway,
// and what to do where that is known.
func (r *Refusal) Error() string {
	text := r.reason()
	switch {
	case r.Status == http.StatusUnauthorized && !strings.Contains(text, "pfl-forge login"): // the gateway says what to do
		text += "; give a token that counts in PFL_FORGE_TOKEN, or in the file of --token-file"
	case r.Status == http.StatusForbidden:
		text += "; the operator of the gateway gives roles"
	case r.RetryAfter > 0:
		text += fmt.Sprintf("; try again in %s", r.RetryAfter)
	}
	return text
}

// reason returns the reasons of a refusal in a line.
func (r *Refusal) reason() string {
	var parts []string
	for _, e := range r.Errors {
		text := e.Reason
		if e.Field != "" {
			text = e.Field + ": " + text
		}
		parts = append(parts, text)
	}
	if len(parts) == 0 {
		parts = []string{cmp.Or(r.Detail, r.Title, fmt.Sprintf("the gateway answers with status %d", r.Status))}
	}
	return term.Line(strings.Join(parts, "; "))
}

// unsure reports whether the request may have been done nevertheless. The gateway
// says so where it knows that nothing was; a proxy before it does not know.
func (r *Refusal) unsure() bool {
	return r.Status >= http.StatusInternalServerError && !strings.Contains(r.Detail, "nothing was done")
}

// refusalOf returns the refusal that an answer is. What is no problem of RFC
// 9457 does not come from a gateway, but from what stands before it.
func refusalOf(status int, header http.Header, body []byte) *Refusal {
	r := &Refusal{}
	kind, _, _ := mime.ParseMediaType(header.Get("Content-Type"))
	if kind != "application/problem+json" || json.Unmarshal(body, &r.Problem) != nil {
		r.Problem = api.Problem{Detail: fmt.Sprintf("the server answers with status %d (%s) and %s, as no gateway does: is that the address of one?",
			status, http.StatusText(status), content(kind))}
	}
	clean(&r.Problem)
	r.Status = status // the one that counts
	return r
}

// content names the kind of an answer's content.
func content(kind string) string {
	switch kind {
	case "":
		return "nothing that it names"
	case "text/html":
		return "a web page"
	}
	return term.Short(kind, 40)
}
