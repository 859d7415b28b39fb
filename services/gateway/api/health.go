package api

import (
	"net/http"
	"strconv"

	"github.com/pfl-forge/pfl-forge/document/figures"
)

// healthQueries are the parameters of health, with the names of the fields of
// figures.HealthRequest.
var healthQueries = []Query{{"weeks", "how many weeks, the present one included: 1 to 26, or 8 if it is left out", false}}

// health answers with how the work of a project went.
func (c *call) health() error {
	var ask figures.HealthRequest
	if text := c.r.URL.Query().Get("weeks"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return wrong("weeks", "is not a whole number above 0")
		}
		ask.Weeks = n
	}
	found, err := c.api.cfg.Bus.Submissions.Page(c.r.Context(), c.project, c.api.cfg.Account, string(c.route.Verb), ask)
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, found)
}
