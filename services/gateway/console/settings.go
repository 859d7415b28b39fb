package console

import (
	"net/http"

	"github.com/pfl-forge/pfl-forge/document/setup"
	"github.com/pfl-forge/pfl-forge/services/gateway/console/settings"
	"github.com/pfl-forge/pfl-forge/services/gateway/tokens"
)

// settingsPage has the data of the settings of a project. Own says that they are a person's own.
type settingsPage struct {
	settings.Page
	choice
	Own bool
}

// settings shows by which settings a project is worked on. There is nothing to
// change: the files decide that it names.
func (v *visit) settings() error {
	q, err := settings.ParseQuery(v.r.URL.Query())
	if err != nil {
		return &refusal{http.StatusBadRequest, sentence(err.Error())}
	}
	page := settingsPage{Own: v.console.cfg.Own != nil}
	if page.choice, err = v.choose(tokens.Settings, "Looking at settings takes a role in a project: /console/settings?project=NAME."); err != nil {
		return err
	}
	var s setup.InForce
	if err := v.ask(v.r.Context(), page.Project, "/settings", &s); err != nil {
		return err
	}
	page.Page = settings.Of(q, &s, v.token.May(page.Project, tokens.Audit))
	return v.show(http.StatusOK, "settings", "Settings of "+string(page.Project), &page)
}
