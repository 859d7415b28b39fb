package console

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/services/gateway/api"
	"github.com/pfl-forge/pfl-forge/services/gateway/console/costs"
	"github.com/pfl-forge/pfl-forge/services/gateway/tokens"
)

// costsPage has the data of the costs of a project.
type costsPage struct {
	costs.Page
	chosen
	// Later says why there are no figures now; empty if there are.
	Later string
}

// Address returns the address of the page with other parameters, Export that of its download.
func (p *costsPage) Address(q url.Values) string { return address(Base+"costs", q) }

// Export returns the address of a download of the table.
func (p *costsPage) Export() string { return address(Base+"costs/export", p.Values(p.Project)) }

// costed reads the address of a page of costs.
func costed(v *visit) (page costsPage, err error) {
	q := v.r.URL.Query()
	if page.Query, err = costs.ParseQuery(q); err != nil {
		return page, &refusal{http.StatusBadRequest, sentence(err.Error())}
	}
	page.chosen, err = choose(v, q.Get("project"), tokens.Costs, "Looking at costs")
	return page, err
}

// chosen is the project that a page is about, and those that it could be about.
type chosen struct {
	Project  forge.ProjectID
	Projects []forge.ProjectID
	// Wide says that there may be projects that are not listed.
	Wide bool
}

// choose returns the project that an address names. Where it names none, it is the first one in which the holder may do what the page does.
func choose(v *visit, named string, verb tokens.Verb, doing string) (c chosen, err error) {
	c.Wide = v.token.Everywhere()
	c.Projects = slices.DeleteFunc(v.console.projects(v.token), func(p forge.ProjectID) bool { return !v.token.May(p, verb) })
	if named == "" {
		if len(c.Projects) == 0 {
			return c, &refusal{http.StatusForbidden, doing + " takes a role in a project: add ?project=NAME to the address."}
		}
		named = string(c.Projects[0])
	}
	c.Project, err = project(named)
	return c, err
}

// costsBy asks for the costs of some days.
func costsBy(v *visit, p forge.ProjectID, by document.CostGroup, days int) (c document.Costs, err error) {
	return c, v.ask(v.r.Context(), p, "/costs?"+costs.Ask(by, days, v.console.cfg.Now()).Encode(), &c)
}

// costs shows what the agents of a project used.
func (v *visit) costs() error {
	page, err := costed(v)
	if err != nil {
		return err
	}
	days, err := costsBy(v, page.Project, document.CostsByDay, costs.Longest)
	var table document.Costs
	if err == nil {
		table, err = costsBy(v, page.Project, page.By, page.Days)
	}
	status := http.StatusOK
	if p, ok := errors.AsType[*api.Problem](err); ok && p.Status == http.StatusServiceUnavailable {
		status, page.Later = p.Status, inWords(p)
	} else if err != nil {
		return err
	} else {
		page.Page = costs.Of(page.Query, &table, &days, v.console.cfg.Now())
	}
	return v.show(status, "costs", "Costs of "+string(page.Project), &page)
}

// costsExport downloads the answer of the API from which the table is made.
func (v *visit) costsExport() error {
	page, err := costed(v)
	if err != nil {
		return err
	}
	c, err := costsBy(v, page.Project, page.By, page.Days)
	if err != nil {
		return err
	}
	d := download{v: v, name: fmt.Sprintf("costs-%s-%s-%d-days.json", page.Project, page.By, page.Days), kind: "application/json"}
	return d.line(c)
}
