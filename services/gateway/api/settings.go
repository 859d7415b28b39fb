package api

import (
	"encoding/json"
	"net/http"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document/setup"
	"github.com/pfl-forge/pfl-forge/services/gateway/tokens"
)

// settings answers with the settings by which a project is worked on. The
// people are those of the gateway's own file, which no runner knows, and for
// those who may audit alone: a name and its roles say whom to deceive.
func (c *call) settings() error {
	found, err := c.api.cfg.Bus.Submissions.Page(c.r.Context(), c.project, c.api.cfg.Account, string(c.route.Verb), setup.Request{})
	if err != nil {
		return err
	}
	var s setup.InForce
	if err := json.Unmarshal(found, &s); err != nil {
		return err
	}
	s.People = nil
	if c.token.May(c.project, tokens.Audit) && !c.api.cfg.Direct {
		s.People = holders(c.api.cfg.Tokens.In(c.project), c.project)
	}
	return c.answer(http.StatusOK, s)
}

// holders returns the entries of a file of tokens without their hashes, and
// without their other projects.
func holders(list []tokens.Token, p forge.ProjectID) (found []setup.Holder) {
	for i := range list {
		t := &list[i]
		name, person := t.Holder()
		one := setup.Holder{Name: name, Kind: "system", Token: t.Name, Everywhere: t.Everywhere(), Expires: t.Expires}
		if person {
			one.Kind = "person"
		}
		for _, r := range t.Roles(p) {
			one.Roles = append(one.Roles, string(r))
		}
		found = append(found, one)
	}
	return found
}
