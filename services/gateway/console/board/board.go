// Package board makes the board out of answers of the API: the filter that an address stands for,
// the intents that it selects, by state, and, of each project, what keeps its work waiting and
// the changes of its merge queue. It is pure: it knows neither HTML nor HTTP, and has no clock.
//
// # What is not trusted
//
// Whoever likes makes up an address: a parameter that is not known, is repeated or is no day is
// refused with a sentence, and a number of a page may be as large as numbers get. Titles, and
// the words of accounts and origins, are texts of others; a template shows them as such, cut.
package board

import (
	"cmp"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
)

// PerPage is how many intents a page of the board has. With as many of the longest titles it
// stays below 100 KB.
const PerPage = 50

// many and one are the parameters of the board that can be repeated, and those that cannot.
var (
	many = []string{"project", "status", "waiting", "type", "label", "risk"}
	one  = []string{"requester", "priority", "agent", "since", "search", "page", "state"}
)

// handed are those that the API has as well.
var handed = []string{"status", "waiting", "type", "label", "requester", "priority", "agent"}

// sentence is an error of an address, as a page shows it.
type sentence string

func (s sentence) Error() string { return string(s) }

// The errors of an address.
const (
	errName  sentence = "The board has no filter of this name."
	errTwice sentence = "A filter is given twice."
	errSince sentence = "Since: give a day such as 2026-03-01."
	errWhole sentence = "Priority: give a whole number."
)

// Filter chooses the intents of the board, as its address has it.
type Filter struct {
	// Address is that of the board, without parameters.
	Address string
	// Values are the parameters, each with at least one value.
	Values url.Values
}

// Parse reads the query of the board at an address. Empty values are those of a
// form's empty fields. Its error is a sentence.
func Parse(address string, q url.Values) (Filter, error) {
	f := Filter{address, url.Values{}}
	for name, values := range q {
		values = slices.DeleteFunc(slices.Clone(values), func(s string) bool { return s == "" })
		repeats := slices.Contains(many, name)
		if !repeats && !slices.Contains(one, name) {
			return f, errName
		}
		if !repeats && len(values) > 1 {
			return f, errTwice
		}
		if name == "label" { // a form has one field for all of them
			values = strings.Fields(strings.Join(values, " "))
		}
		if len(values) > 0 {
			f.Values[name] = values
		}
	}
	if text := f.Get("priority"); text != "" {
		if _, err := strconv.Atoi(text); err != nil {
			return f, errWhole
		}
	}
	_, err := f.since()
	return f, err
}

// since reads the day or time that the filter has; zero for none.
func (f Filter) since() (time.Time, error) {
	text := f.Get("since")
	if text == "" {
		return time.Time{}, nil
	}
	return Since(text)
}

// Since reads a day or a time. Its error is a sentence.
func Since(text string) (time.Time, error) {
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, nil
		}
	}
	return time.Time{}, errSince
}

// Ask returns the parameters by which the API is asked for the intents.
func (f Filter) Ask() url.Values {
	ask := url.Values{}
	for _, name := range handed {
		if values := f.Values[name]; len(values) > 0 {
			ask[name] = values
		}
	}
	if at, err := f.since(); err == nil && !at.IsZero() {
		ask.Set("since", at.Format(time.RFC3339))
	}
	return ask
}

// Has reports whether a parameter has a value.
func (f Filter) Has(name, value string) bool { return slices.Contains(f.Values[name], value) }

// Get returns the first value of a parameter.
func (f Filter) Get(name string) string { return f.Values.Get(name) }

// All returns the values of a parameter, with blanks in between.
func (f Filter) All(name string) string { return strings.Join(f.Values[name], " ") }

// Projects returns the projects that the filter names.
func (f Filter) Projects() []string { return f.Values["project"] }

// with returns the address of the board with another value of one parameter, on its first
// page; an empty value takes the parameter away.
func (f Filter) with(name, value string) string {
	q := maps.Clone(f.Values)
	delete(q, name)
	delete(q, "page")
	if value != "" {
		q.Set(name, value)
	}
	if len(q) == 0 {
		return f.Address
	}
	return f.Address + "?" + q.Encode()
}

// paged returns the address of another page.
func (f Filter) paged(n int) string {
	q := maps.Clone(f.Values)
	q.Set("page", strconv.Itoa(n))
	return f.Address + "?" + q.Encode()
}

// Tab chooses a state.
type Tab struct {
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

// List has the intents of a page.
type List struct {
	// Tabs choose a state, with the number of intents in each.
	Tabs []Tab
	Rows []document.State
	// From and To are the places of the first and the last row among Total.
	From, To, Total int
	// Earlier and Later lead to the pages beside this one; empty where there is none.
	Earlier, Later string
}

// List makes the page of the intents that there are. It changes the order of all.
func (f Filter) List(all []document.State) (p List) {
	risks, search := f.Values["risk"], strings.ToLower(f.Get("search"))
	all = slices.DeleteFunc(all, func(s document.State) bool {
		return len(risks) > 0 && !slices.Contains(risks, string(s.Risk)) ||
			search != "" && !strings.Contains(strings.ToLower(s.Title+"\n"+string(s.Intent)+"\n"+s.AskedBy()), search)
	})
	state := f.Get("state")
	p.Tabs = append(p.Tabs, Tab{"all", f.with("state", ""), len(all), state == ""})
	chosen := all
	for _, one := range states {
		var in []document.State
		for i := range all {
			if one.in(&all[i]) {
				in = append(in, all[i])
			}
		}
		p.Tabs = append(p.Tabs, Tab{one.name, f.with("state", one.name), len(in), state == one.name})
		if state == one.name {
			chosen = in
		}
	}
	// What waits for a person comes first, then what changed last.
	slices.SortStableFunc(chosen, func(a, b document.State) int {
		return cmp.Or(cmp.Compare(waits(&a), waits(&b)), b.UpdatedAt.Compare(a.UpdatedAt), cmp.Compare(a.Intent, b.Intent))
	})
	n, err := strconv.Atoi(f.Get("page"))
	if err != nil || n < 1 {
		n = 1
	}
	p.Total = len(chosen)
	from := min((n-1)*PerPage, p.Total)
	if n > p.Total/PerPage+1 {
		from = p.Total // a number of a page may be as large as numbers get
	}
	p.To = min(from+PerPage, p.Total)
	p.Rows, p.From = chosen[from:p.To], min(from+1, p.Total)
	if n > 1 {
		p.Earlier = f.paged(n - 1)
	}
	if p.To < p.Total {
		p.Later = f.paged(n + 1)
	}
	return p
}

// waits returns 0 for an intent that waits for a person, and 1 for others.
func waits(s *document.State) int {
	if s.Waiting != "" {
		return 0
	}
	return 1
}
