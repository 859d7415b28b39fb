package console

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/pfl-forge/pfl-forge/document/figures"
	"github.com/pfl-forge/pfl-forge/services/gateway/api"
	"github.com/pfl-forge/pfl-forge/services/gateway/console/download"
	"github.com/pfl-forge/pfl-forge/services/gateway/console/health"
	"github.com/pfl-forge/pfl-forge/services/gateway/tokens"
)

// healthPage has the data of the health of a project.
type healthPage struct {
	health.Page
	choice
	// Later says why there are no figures now; empty if there are.
	Later string
}

// Address returns the address of the page with other parameters, Export that of its download.
func (p *healthPage) Address(q url.Values) string { return address(Base+"health", q) }

// Export returns the address of a download of all figures.
func (p *healthPage) Export() string { return address(Base+"health/export", p.Values(p.Project)) }

// healthOf reads the address of a page of health, and asks for the figures.
func healthOf(v *visit) (page healthPage, h figures.Health, err error) {
	q := v.r.URL.Query()
	if page.Query, err = health.ParseQuery(q); err != nil {
		return page, h, &refusal{http.StatusBadRequest, sentence(err.Error())}
	}
	if page.choice, err = v.choose(tokens.Health, "Looking at health takes a role in a project: /console/health?project=NAME."); err != nil {
		return page, h, err
	}
	return page, h, v.ask(v.r.Context(), page.Project, fmt.Sprintf("/health?weeks=%d", page.Query.Weeks), &h)
}

// health shows how well the work of a project goes.
func (v *visit) health() error {
	page, h, err := healthOf(v)
	status := http.StatusOK
	if p, ok := errors.AsType[*api.Problem](err); ok && p.Status == http.StatusServiceUnavailable {
		status, page.Later = p.Status, inWords(p)
	} else if err != nil {
		return err
	} else {
		page.Page = health.Of(page.Query, page.Project, &h)
	}
	return v.show(status, "health", "Health of "+string(page.Project), &page)
}

// healthExport downloads the answer of the API from which the page is made.
func (v *visit) healthExport() error {
	page, h, err := healthOf(v)
	if err != nil {
		return err
	}
	d := download.File{To: v.w, Name: fmt.Sprintf("health-%s-%d-weeks.json", page.Project, page.Query.Weeks), Kind: "application/json"}
	return d.Line(h)
}
