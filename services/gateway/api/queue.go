package api

import (
	"net/http"

	"github.com/pfl-forge/pfl-forge/document"
)

// queue answers with the merge queue of a project, and what keeps all its work waiting.
func (c *call) queue() error {
	found, err := c.api.cfg.Bus.Submissions.Page(c.r.Context(), c.project, c.api.cfg.Account, string(c.route.Verb), document.QueueRequest{})
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, found)
}
