package api

import (
	"net/http"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
)

// queueQueries are the parameters of the merge queue, with the names of the
// fields of document.QueueRequest.
var queueQueries = []Query{{"intent", "only the changes of this intent, with its pull requests; without it all changes", false}}

// queue answers with the merge queue of a project, and what keeps all its work waiting.
func (c *call) queue() error {
	ask := document.QueueRequest{Intent: forge.IntentID(c.r.URL.Query().Get("intent"))}
	found, err := c.api.cfg.Bus.Submissions.Page(c.r.Context(), c.project, c.api.cfg.Account, string(c.route.Verb), ask)
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, found)
}
