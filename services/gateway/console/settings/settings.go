// Package settings makes the page of a project's settings out of an answer of the API: rows in
// groups, with words for where each value comes from. It is pure: it knows neither HTML nor HTTP.
//
// Values are texts of the repository, which agents can have written as well; a
// template shows them as such.
package settings

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document/setup"
	"github.com/pfl-forge/pfl-forge/internal/pattern"
)

// Query has the choices of the address of a page, besides the project.
type Query struct {
	// Changed leaves out the settings that are the defaults.
	Changed bool
}

// ParseQuery reads the parameters of an address: project and show, each once
// and both optional. Its error is a sentence that names the parameter.
func ParseQuery(q url.Values) (found Query, err error) {
	for name, values := range q {
		if name != "project" && name != "show" {
			return found, fmt.Errorf("settings have no parameter %.40q: there are project and show", name)
		}
		if len(values) > 1 {
			return found, fmt.Errorf("%s is given twice", name)
		}
	}
	switch text := q.Get("show"); text {
	case "", "all":
	case "changed":
		found.Changed = true
	default:
		return found, fmt.Errorf("show: is %.40q; it can be all or changed", text)
	}
	return found, nil
}

// Choice is a link to the page with another choice.
type Choice struct {
	Name, Address string
	// Here says that the page is this one.
	Here bool
}

// Choices returns links to what a page can show.
func (q Query) Choices(p forge.ProjectID) []Choice {
	to := func(show string) string {
		return "/console/settings?" + url.Values{"project": {string(p)}, "show": {show}}.Encode()
	}
	return []Choice{{"All settings", to("all"), !q.Changed}, {"Only what is not the default", to("changed"), q.Changed}}
}

// Page has the data of a page.
type Page struct {
	Query
	setup.InForce
	// Groups has the settings; a group without any is left out.
	Groups []Group
	// Differ counts those of all settings that are not the defaults.
	Differ int
	// Audits says that whoever looks may see who has which role.
	Audits bool
}

// Group is some settings below a heading.
type Group struct {
	Heading string
	Rows    []Row
}

// Row is one setting.
type Row struct {
	setup.Setting
	// Entries are those of a list, or the one value; none where it is not set.
	Entries []string
	// Long says that there are more entries than are shown at once.
	Long bool
	// Differs says that it is not the default, and Source in words where it comes from.
	Differs bool
	Source  string
	// Hint says what a value means that does not say so itself; empty for all others.
	Hint string
}

// most is how many entries are shown at once.
const most = 6

// places has the headings, and the settings below each: by name, or by the
// beginning of names that end with a dot.
var places = []struct {
	heading string
	names   []string
}{
	{"Verifying and merging", []string{"base_branch", "verify", "checks", "merge.", "merge_queue.", "worktree_setup", "worktree_dir"}},
	{"Reviews", []string{"review.", "max_review_retries"}},
	{"Approvals and trust", []string{
		"policy.approvals.", "policy.approvers", "policy.protected_paths", "policy.trusted_origins", "policy.analyze_before_approval", "policy.max_depth",
	}},
	{"Sandbox, network and tools", []string{
		"policy.sandbox", "policy.sandbox_read", "policy.sandbox_write", "policy.network", "policy.command_network", "triage_tools", "worker_tools",
	}},
	{"Agents and models", []string{"agent", "agents", "roles.", "fallback", "models.", "calls.", "recipes"}},
	{"Money, time and room", []string{"budget.", "timeouts.", "parallel_workers"}},
	{"Proposals of pfl-forge itself, and schedules", []string{"reflection.", "schedules"}},
	{others, nil},
}

// commits matches the ids of commits.
var commits = pattern.New(`^[0-9a-f]{40}([0-9a-f]{24})?$`)

// others is the heading of settings that a newer runner has.
const others = "Others"

// headingOf returns the heading of a setting.
func headingOf(name string) string {
	for _, p := range places {
		if slices.ContainsFunc(p.names, func(n string) bool { return n == name || strings.HasSuffix(n, ".") && strings.HasPrefix(name, n) }) {
			return p.heading
		}
	}
	return others
}

// Of makes a page of an answer. audits says that whoever looks may see who has which role.
func Of(q Query, s *setup.InForce, audits bool) Page {
	p := Page{Query: q, InForce: *s, Audits: audits}
	if r := s.Read; r != nil { // it becomes an address
		if _, err := forge.ParseIntentID(string(r.Intent)); err != nil || !commits.MatchString(r.Commit) {
			p.Read = nil
		}
	}
	p.Schedules = slices.Clone(s.Schedules)
	for i := range p.Schedules { // the same holds for these
		if _, err := forge.ParseIntentID(string(p.Schedules[i].LastIntent)); err != nil {
			p.Schedules[i].LastIntent = ""
		}
	}
	byHeading := map[string][]Row{}
	for _, one := range s.Settings {
		r := rowOf(one)
		if r.Differs {
			p.Differ++
		} else if q.Changed {
			continue
		}
		at := headingOf(one.Name)
		byHeading[at] = append(byHeading[at], r)
	}
	for _, at := range places {
		if rows := byHeading[at.heading]; len(rows) > 0 {
			p.Groups = append(p.Groups, Group{at.heading, rows})
		}
	}
	return p
}

// rowOf returns the row of a setting.
func rowOf(s setup.Setting) Row {
	r := Row{Setting: s, Differs: s.From != "default", Source: cmp.Or(sources[s.From], s.From)}
	if s.Value != "" {
		r.Entries = strings.Split(s.Value, "\n")
	}
	r.Long = len(r.Entries) > most
	switch {
	case s.Value == "0" && strings.HasPrefix(s.Name, "budget.") && s.Name != "budget.call_usd":
		r.Hint = "no limit"
	case s.Value == "0" && s.Name == "merge_queue.parallel":
		r.Hint = "as parallel_workers"
	case s.Value == "" && s.Name == "policy.approvers":
		r.Hint = "everybody with the role"
	case s.Value == "" && s.Name == "policy.approvals.not_requester":
		r.Hint = "yes, where more than one person could approve"
	}
	return r
}

// sources has the words for where a value comes from.
var sources = map[string]string{"default": "the default", "repository": "pfl-forge.yaml", "operator": "the operator"}
