package console

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/services/gateway/api"
	"github.com/pfl-forge/pfl-forge/services/gateway/console/costs"
	"github.com/pfl-forge/pfl-forge/services/gateway/console/download"
	"github.com/pfl-forge/pfl-forge/services/gateway/tokens"
)

// costsPage has the data of the costs of a project.
type costsPage struct {
	costs.Page
	choice
	// Later says why there are no figures now; empty if there are.
	Later string
	// Unread are the projects that a table of all of them leaves out, since
	// they cannot be read now.
	Unread []forge.ProjectID
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
	page.choice, err = v.choose(tokens.Costs, "Looking at costs takes a role in a project: /console/costs?project=NAME.")
	return page, err
}

// costsBy asks for the costs of some days.
func costsBy(v *visit, p forge.ProjectID, by document.CostGroup, days int) (c document.Costs, err error) {
	return c, v.ask(v.r.Context(), p, "/costs?"+costs.Ask(by, days, v.console.cfg.Now()).Encode(), &c)
}

// table asks for the table of a page. By project, it is of all the projects
// that the holder may look at, up to mostProjects.
func (p *costsPage) table(v *visit) (document.Costs, error) {
	if p.By != document.CostsByProject {
		return costsBy(v, p.Project, p.By, p.Days)
	}
	list := merged(p.Projects, []forge.ProjectID{p.Project})
	list = list[:min(len(list), mostProjects)]
	parts, errs := make([]document.Costs, len(list)), make([]error, len(list))
	var asked sync.WaitGroup
	for i, one := range list {
		asked.Go(func() { parts[i], errs[i] = costsBy(v, one, p.By, p.Days) })
	}
	asked.Wait()
	for i, err := range errs {
		if err != nil && list[i] == p.Project {
			return document.Costs{}, err
		}
		if err != nil {
			p.Unread = append(p.Unread, list[i])
		}
	}
	return costs.Projects(parts), nil
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
		table, err = page.table(v)
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
	c, err := page.table(v)
	if err == nil && len(page.Unread) > 0 {
		err = &refusal{http.StatusServiceUnavailable, fmt.Sprintf("These projects cannot be read now: %s. Try again.", page.Unread)}
	}
	if err != nil {
		return err
	}
	d := download.File{To: v.w, Name: fmt.Sprintf("costs-%s-%s-%d-days.json", page.Project, page.By, page.Days), Kind: "application/json"}
	return d.Line(c)
}
