package console

import (
	"cmp"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
)

// perBoard is how many intents a page of the board has. With as many of the longest titles it
// stays below 100 KB.
const perBoard = 50

// filters are the parameters of the board that can be repeated, and those that cannot. Those
// of the API are handed on to it.
var (
	boardMany = []string{"project", "status", "waiting", "type", "label", "risk"}
	boardOne  = []string{"requester", "since", "search", "page"}
)

// boardPage has the data of the board.
type boardPage struct {
	Filter   filter
	Projects []forge.ProjectID
	// Wide says that there may be projects that are not listed.
	Wide bool
	// Tabs choose a state, with the number of intents in each.
	Tabs []tab
	Rows []document.State
	// From and To are the places of the first and the last row among Total.
	From, To, Total int
	// Earlier and Later lead to the pages beside this one; empty where there is none.
	Earlier, Later string
	// More says that there are more intents than were looked at, and Unread names projects that cannot be read.
	More   bool
	Unread []forge.ProjectID
}

// filter chooses the intents of the board, as its address has it.
type filter struct {
	values url.Values
}

// Has reports whether a parameter has a value.
func (f filter) Has(name, value string) bool { return slices.Contains(f.values[name], value) }

// Get returns the first value of a parameter.
func (f filter) Get(name string) string { return f.values.Get(name) }

// All returns the values of a parameter, with blanks in between.
func (f filter) All(name string) string { return strings.Join(f.values[name], " ") }

// with returns the address of the board with another value of one parameter, on its first
// page; an empty value takes the parameter away.
func (f filter) with(name, value string) string {
	q := url.Values{}
	for n, values := range f.values {
		if n != name && n != "page" {
			q[n] = values
		}
	}
	if value != "" {
		q.Set(name, value)
	}
	return address(Base+"board", q)
}

// address returns a path with a query.
func address(path string, q url.Values) string {
	if len(q) == 0 {
		return path
	}
	return path + "?" + q.Encode()
}

// tab chooses a state.
type tab struct {
	Name, Address string
	Count         int
	// Here says that it is chosen.
	Here bool
}

// states are the tabs of the board: what waits for a person is a state of its own.
var states = []struct {
	name string
	in   func(*document.State) bool
}{
	{"waits for a person", func(s *document.State) bool { return s.Waiting != "" }},
	{"in progress", func(s *document.State) bool {
		return s.Waiting == "" && (s.Status == forge.StatusExecuting || s.Status == forge.StatusApproved)
	}},
	{"proposed", func(s *document.State) bool { return s.Waiting == "" && s.Status == forge.StatusProposed }},
	{"done", func(s *document.State) bool { return s.Status == forge.StatusDone }},
	{"ended otherwise", func(s *document.State) bool {
		return s.Waiting == "" && s.Status.Ended() && s.Status != forge.StatusDone
	}},
}

// board shows the intents and goals of the projects, by state.
func (v *visit) board() error {
	f, err := boardFilter(v.r.URL.Query())
	if err != nil {
		return err
	}
	page := boardPage{Filter: f, Projects: v.listable(), Wide: v.token.Everywhere()}
	chosen := page.Projects
	if names := f.values["project"]; len(names) > 0 {
		chosen = nil
		for _, name := range names {
			p, err := project(name)
			if err != nil {
				return err
			}
			chosen = append(chosen, p)
		}
		page.Projects = merged(page.Projects, nil)
	}
	ask := url.Values{}
	for _, name := range []string{"status", "waiting", "type", "label", "requester"} {
		if values := f.values[name]; len(values) > 0 {
			ask[name] = values
		}
	}
	if since := f.Get("since"); since != "" {
		at, err := sinceOf(since)
		if err != nil {
			return err
		}
		ask.Set("since", at.Format(time.RFC3339))
	}
	all, err := v.collect(v.r.Context(), chosen, ask)
	if err != nil {
		return err
	}
	page.More, page.Unread = all.More, all.Unread
	page.fill(all.Intents)
	return v.show(http.StatusOK, "board", "Board", page)
}

// sinceOf reads a day or a time.
func sinceOf(text string) (time.Time, error) {
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, nil
		}
	}
	return time.Time{}, &refusal{http.StatusBadRequest, "Since: give a day such as 2026-03-01."}
}

// boardFilter reads the query of the board. Empty values are those of a form's empty fields.
func boardFilter(q url.Values) (filter, error) {
	f := filter{url.Values{}}
	for name, values := range q {
		values = slices.DeleteFunc(slices.Clone(values), func(s string) bool { return s == "" })
		many := slices.Contains(boardMany, name)
		switch {
		case name == "state" || slices.Contains(boardOne, name) || many:
		default:
			return f, &refusal{http.StatusBadRequest, "The board has no filter of this name."}
		}
		if !many && len(values) > 1 {
			return f, &refusal{http.StatusBadRequest, "A filter is given twice."}
		}
		if name == "label" { // a form has one field for all of them
			values = strings.Fields(strings.Join(values, " "))
		}
		if len(values) > 0 {
			f.values[name] = values
		}
	}
	return f, nil
}

// fill makes the page of the intents that there are.
func (p *boardPage) fill(all []document.State) {
	all = slices.DeleteFunc(all, func(s document.State) bool {
		risks, search := p.Filter.values["risk"], p.Filter.Get("search")
		return len(risks) > 0 && !slices.Contains(risks, string(s.Risk)) ||
			search != "" && !holds(s.Title+"\n"+string(s.Intent)+"\n"+s.AskedBy(), search)
	})
	state := p.Filter.Get("state")
	p.Tabs = append(p.Tabs, tab{"all", p.Filter.with("state", ""), len(all), state == ""})
	chosen := all
	for _, one := range states {
		var in []document.State
		for i := range all {
			if one.in(&all[i]) {
				in = append(in, all[i])
			}
		}
		p.Tabs = append(p.Tabs, tab{one.name, p.Filter.with("state", one.name), len(in), state == one.name})
		if state == one.name {
			chosen = in
		}
	}
	// What waits for a person comes first, then what changed last.
	slices.SortStableFunc(chosen, func(a, b document.State) int {
		return cmp.Or(cmp.Compare(waits(&a), waits(&b)), b.UpdatedAt.Compare(a.UpdatedAt), cmp.Compare(a.Intent, b.Intent))
	})
	n, err := strconv.Atoi(p.Filter.Get("page"))
	if err != nil || n < 1 {
		n = 1
	}
	p.Total = len(chosen)
	from := min((n-1)*perBoard, p.Total)
	to := min(from+perBoard, p.Total)
	p.Rows, p.From, p.To = chosen[from:to], min(from+1, p.Total), to
	if n > 1 {
		p.Earlier = p.Filter.paged(n - 1)
	}
	if to < p.Total {
		p.Later = p.Filter.paged(n + 1)
	}
}

// paged returns the address of another page.
func (f filter) paged(n int) string {
	q := url.Values{}
	maps.Copy(q, f.values)
	q.Set("page", strconv.Itoa(n))
	return address(Base+"board", q)
}

// waits returns 0 for an intent that waits for a person, and 1 for others.
func waits(s *document.State) int {
	if s.Waiting != "" {
		return 0
	}
	return 1
}
