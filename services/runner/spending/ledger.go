// Package spending adds up what agents used, from the journals of intents.
//
// What counts is decided by the rules alone: each record has the sum of its intent so far, and a
// [Ledger] divides the difference between two records among the results in the second. So its sums
// are those of the rules whatever happened, a result that came twice or too late included, and
// reading a journal costs no fold of its machine.
package spending

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/config"
	"github.com/pfl-forge/pfl-forge/document"
)

// Ledger has the attempts that called an agent, as the journals of some intents tell of them. The
// zero value is empty and keeps everything. It is not safe for concurrent use.
type Ledger struct {
	// Keep is for how long an attempt is kept, by the time of the newest; 0 keeps all.
	Keep time.Duration

	// attempts are in the order of their records.
	attempts []attempt
	// forgotten is when the newest attempt was decided that is not kept any more.
	forgotten time.Time
	intents   map[forge.Key]*account
	// limits has the budgets of projects, as the last result that had a policy read them.
	limits map[forge.ProjectID]forge.Budget
}

// attempt is one that called an agent.
type attempt struct {
	of *account
	// task is empty for a step of the whole intent.
	task  forge.TaskID
	step  forge.Step
	agent string
	model string
	took  time.Duration
	used  forge.Usage
	// at is when its result was decided on.
	at time.Time
}

// account describes an intent, as its newest record does.
type account struct {
	key forge.Key
	// sum is everything that the rules have counted so far.
	sum forge.Usage
	// title, requester and kind, the type, may be changed by an edit: attempts
	// of before count under the newest.
	title, requester, kind string
	// agents are those that it names, or that were called for it, each once.
	agents []string
	// limitUSD is the budget that the intent has of its own; 0: that of its project.
	limitUSD float64
}

// Add adds the next record of an intent's journal. Records of projects say
// nothing of single attempts.
func (l *Ledger) Add(key forge.Key, rec *forge.Record) {
	if key.IsProject() {
		return
	}
	if l.intents == nil {
		l.intents, l.limits = map[forge.Key]*account{}, map[forge.ProjectID]forge.Budget{}
	}
	a := l.intents[key]
	if a == nil {
		a = &account{key: key}
		l.intents[key] = a
	}
	s := &rec.Summary
	grown := minus(s.Usage, a.sum)
	a.sum, a.title, a.requester, a.kind = s.Usage, s.Title, s.Requester, s.Type
	for i := range rec.Events {
		l.event(a, &rec.Events[i], &grown)
	}
	l.forget(s.UpdatedAt)
}

// event takes an event's budgets, and the attempt that ended with it. grown is how much of
// the difference of the record no attempt before it has taken.
func (l *Ledger) event(a *account, ev *forge.Event, grown *forge.Usage) {
	switch m := ev.Message.(type) {
	case *forge.Submit:
		a.limitUSD = cmp.Or(max(m.Intent.BudgetUSD, 0), a.limitUSD)
		a.called(m.Intent.Agent)
	case *forge.Retry:
		a.limitUSD = cmp.Or(max(m.BudgetUSD, 0), a.limitUSD)
	case *forge.RunReflected:
		s := &m.Step
		l.take(grown, attempt{a, s.TaskID, s.Step, s.Agent, s.Model, s.Duration, s.Usage, ev.At})
	case *forge.Result:
		a.called(m.Agent)
		if out := forge.As[*forge.Analysis](m.Output); out != nil && out.Policy != nil {
			l.limits[a.key.Project] = out.Policy.Budget
		} else if m.Policy != nil {
			l.limits[a.key.Project] = m.Policy.Budget
		}
		l.take(grown, attempt{a, m.Attempt.Task, m.Attempt.Step, m.Agent, m.Model, m.Duration, m.Usage, ev.At})
	default:
	}
}

// called notes an agent of an intent.
func (a *account) called(agent string) {
	if agent != "" && !slices.Contains(a.agents, agent) {
		a.agents = append(a.agents, agent)
	}
}

// By returns the intents that name an agent, or for which it was called: in an
// attempt that has ended, or that has told that it began.
func (l *Ledger) By(agent string) map[forge.IntentID]bool {
	found := map[forge.IntentID]bool{}
	for key, a := range l.intents {
		if slices.Contains(a.agents, agent) {
			found[key.Intent] = true
		}
	}
	return found
}

// take takes an attempt if the rules counted it: then what it used is a part of grown. Recipes cost
// nothing.
func (l *Ledger) take(grown *forge.Usage, one attempt) {
	rest := minus(*grown, one.used)
	if one.used == (forge.Usage{}) || min(rest.InputTokens, rest.OutputTokens, rest.CacheReadTokens, rest.CacheWriteTokens, rest.Turns, rest.Calls) < 0 {
		return
	}
	*grown = rest
	if one.agent != config.AgentRecipe {
		l.attempts = append(l.attempts, one)
	}
}

// forget drops attempts that are too old, many at a time: each drop copies the others.
func (l *Ledger) forget(now time.Time) {
	if l.Keep == 0 || len(l.attempts) == 0 || now.Sub(l.attempts[0].at) < l.Keep+l.Keep/8 {
		return
	}
	kept := make([]attempt, 0, len(l.attempts))
	for _, one := range l.attempts { // those of different intents are in no order
		if now.Sub(one.at) < l.Keep {
			kept = append(kept, one)
		} else if one.at.After(l.forgotten) {
			l.forgotten = one.at
		}
	}
	l.attempts = kept
}

// From returns since when the ledger has every attempt; zero if it has all of them.
func (l *Ledger) From() time.Time {
	if l.forgotten.IsZero() {
		return l.forgotten
	}
	return l.forgotten.Add(1)
}

// Costs adds up the attempts that a request is about, with a row for each group. Budgets are those
// of the projects given, by the account that the rules keep.
func (l *Ledger) Costs(r document.CostsRequest, projects []forge.Summary, now time.Time) document.Costs {
	rows := map[string]*document.CostRow{}
	c := document.Costs{
		By: cmp.Or(r.By, document.CostsByDay), Since: r.Since, Until: r.Until, Rows: []document.CostRow{}, Total: document.CostRow{Key: "total"},
	}
	for i := range l.attempts {
		a := &l.attempts[i]
		if a.at.Before(r.Since) || !r.Until.IsZero() && !a.at.Before(r.Until) {
			continue
		}
		key := a.group(c.By)
		row := rows[key]
		if row == nil {
			row = &document.CostRow{Key: key}
			if c.By == document.CostsByIntent {
				l.limit(row, a.of)
			}
			rows[key] = row
		}
		row.Add(a.used, a.took)
		c.Total.Add(a.used, a.took)
	}
	for _, row := range rows {
		c.Rows = append(c.Rows, *row)
	}
	slices.SortFunc(c.Rows, func(x, y document.CostRow) int {
		if c.By == document.CostsByDay {
			return strings.Compare(x.Key, y.Key)
		}
		return cmp.Or(cmp.Compare(y.CostUSD, x.CostUSD), cmp.Compare(y.InputTokens+y.OutputTokens, x.InputTokens+x.OutputTokens),
			strings.Compare(x.Key, y.Key))
	})
	c.Budgets = budgets(projects, now)
	return c
}

// limit gives a row of an intent its title, and the budget of the intent with
// the rest of it, by the rules' own count.
func (l *Ledger) limit(row *document.CostRow, of *account) {
	row.Title = of.title
	limit := cmp.Or(of.limitUSD, l.limits[of.key.Project].IntentUSD)
	if limit <= 0 {
		return
	}
	left := limit - of.sum.CostUSD
	row.BudgetUSD, row.LeftUSD = &limit, &left
}

// budgets returns the limits of projects, and of their today.
func budgets(projects []forge.Summary, now time.Time) []document.CostBudget {
	var list []document.CostBudget
	for i := range projects {
		name, p := projects[i].Key.Project, projects[i].Project
		if p == nil { // a former version wrote it
			continue
		}
		if of := p.Limits.ProjectUSD; of > 0 {
			list = append(list, document.CostBudget{Project: name, Of: "project", BudgetUSD: of, SpentUSD: p.SpentUSD, LeftUSD: of - p.SpentUSD})
		}
		if of := p.Limits.DayUSD; of > 0 {
			today := p.TodayUSD
			if p.Day != now.Unix()/(24*60*60) {
				today = 0 // nothing was spent today
			}
			list = append(list, document.CostBudget{Project: name, Of: "day", BudgetUSD: of, SpentUSD: today, LeftUSD: of - today})
		}
	}
	slices.SortFunc(list, func(x, y document.CostBudget) int {
		return cmp.Or(strings.Compare(string(x.Project), string(y.Project)), strings.Compare(y.Of, x.Of))
	})
	return list
}

// group returns the group of an attempt; empty if it is not known.
func (a *attempt) group(by document.CostGroup) string {
	switch by {
	case document.CostsByIntent:
		return string(a.of.key.Intent)
	case document.CostsByTask:
		return cmp.Or(string(a.task), string(a.of.key.Intent))
	case document.CostsByStep:
		return string(a.step)
	case document.CostsByAgent:
		return a.agent
	case document.CostsByModel:
		return a.model
	case document.CostsByDay:
		return a.at.UTC().Format(time.DateOnly)
	case document.CostsByRequester:
		return a.of.requester
	case document.CostsByType:
		return a.of.kind
	case document.CostsByProject:
		return string(a.of.key.Project)
	}
	return ""
}

// minus returns the difference of two usages, field by field.
func minus(u, v forge.Usage) forge.Usage {
	return forge.Usage{
		InputTokens: u.InputTokens - v.InputTokens, OutputTokens: u.OutputTokens - v.OutputTokens,
		CacheReadTokens: u.CacheReadTokens - v.CacheReadTokens, CacheWriteTokens: u.CacheWriteTokens - v.CacheWriteTokens,
		CostUSD: u.CostUSD - v.CostUSD, Turns: u.Turns - v.Turns, Calls: u.Calls - v.Calls,
	}
}
