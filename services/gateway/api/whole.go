package api

import (
	"net/http"
	"strconv"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/packed"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
	"github.com/pfl-forge/pfl-forge/document/whole"
)

// The parameters of a list and of an intent as a whole, with the names of the
// fields of whole.Request.
var (
	overviewPages = []Query{{"after", "the id after which the page begins: next of the previous answer", false}}
	wholePages    = []Query{{"records", "how many of its records are known already, and left out", false}}
)

// An answer may have 16 MiB, and twice that while it is made, as long as a client
// takes to read it. So many are there at the same time, and so many of one token.
const (
	mostWholes = 16
	ownWholes  = 4
)

// whole answers with an intent, or with the list of all, as the rules have
// them. Its schema goes with the version: it is for the command line, and other
// clients do well with the documents of the other addresses.
//
// A runner answers in one message, compressed; here it is opened, so that a client
// needs to know nothing of that. How large it may become is bounded there and here.
func (c *call) whole() error {
	if !c.api.wholes.enter(c.token.Name) {
		p := problem(http.StatusTooManyRequests, "as much is read at once as may be")
		p.retryAfter = ratePause
		return p
	}
	defer c.api.wholes.leave(c.token.Name)
	q := c.r.URL.Query()
	ask := whole.Request{Intent: c.intent, After: forge.IntentID(q.Get("after"))}
	if text, given := q["records"]; given {
		var err error
		if ask.Records, err = strconv.Atoi(text[0]); err != nil {
			return wrong("records", "is not a whole number")
		}
	}
	found, err := c.api.cfg.Bus.Submissions.Page(c.r.Context(), c.project, c.api.cfg.Account, subjects.VerbWhole, ask)
	if err != nil {
		return inWords(err, "there is no such intent", "it cannot be answered as a whole")
	}
	text, err := packed.Open(found)
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, text)
}
