package costs

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/config"
)

// Query says what a Report is about.
type Query struct {
	By By
	// Since, if not zero, leaves out attempts that were decided on before.
	Since time.Time
	// Until, if not zero, leaves out attempts that were decided on then or
	// later.
	Until time.Time
}

// Row adds up the usage of some attempts, as programs read it.
type Row struct {
	Key              string   `json:"key"                  yaml:"key"` // empty: it is not known
	Title            string   `json:"title,omitempty"      yaml:"title,omitempty"`
	Attempts         int      `json:"attempts"             yaml:"attempts"`
	Calls            int64    `json:"calls"                yaml:"calls"`
	Turns            int64    `json:"turns"                yaml:"turns"`
	InputTokens      int64    `json:"input_tokens"         yaml:"input_tokens"`
	OutputTokens     int64    `json:"output_tokens"        yaml:"output_tokens"`
	CacheReadTokens  int64    `json:"cache_read_tokens"    yaml:"cache_read_tokens"`
	CacheWriteTokens int64    `json:"cache_write_tokens"   yaml:"cache_write_tokens"`
	Seconds          float64  `json:"seconds"              yaml:"seconds"`
	CostUSD          float64  `json:"cost_usd"             yaml:"cost_usd"`
	BudgetUSD        *float64 `json:"budget_usd,omitempty" yaml:"budget_usd,omitempty"`
	LeftUSD          *float64 `json:"left_usd,omitempty"   yaml:"left_usd,omitempty"` // of the budget; below 0 if it was overspent
}

// Report groups the usage of a time, with a row for each group.
type Report struct {
	By      By        `json:"by"                yaml:"by"`
	Since   time.Time `json:"since,omitzero"    yaml:"since,omitempty"`
	Until   time.Time `json:"until,omitzero"    yaml:"until,omitempty"`
	Rows    []Row     `json:"rows"              yaml:"rows"` // the most expensive first; days in their order
	Total   Row       `json:"total"             yaml:"total"`
	Budgets []Budget  `json:"budgets,omitempty" yaml:"budgets,omitempty"`
}

// Budget is a limit of a project with what is left of it, whatever the Query.
type Budget struct {
	Project   forge.ProjectID `json:"project"    yaml:"project"`
	Of        string          `json:"of"         yaml:"of"` // project or day
	BudgetUSD float64         `json:"budget_usd" yaml:"budget_usd"`
	SpentUSD  float64         `json:"spent_usd"  yaml:"spent_usd"`
	LeftUSD   float64         `json:"left_usd"   yaml:"left_usd"` // below 0 if it was overspent
}

// add adds the usage of an attempt.
func (r *Row) add(a *Attempt) {
	u := &a.Usage
	r.Attempts++
	r.Calls += u.Calls
	r.Turns += u.Turns
	r.InputTokens += u.InputTokens
	r.OutputTokens += u.OutputTokens
	r.CacheReadTokens += u.CacheReadTokens
	r.CacheWriteTokens += u.CacheWriteTokens
	r.Seconds += a.Duration.Seconds()
	r.CostUSD += u.CostUSD
}

// called reports whether an attempt called an agent: a recipe is none.
func (a *Attempt) called() bool {
	return a.Agent != config.AgentRecipe && a.Usage != (forge.Usage{})
}

// Report adds up every attempt that called an agent.
func (b *Book) Report(q Query, now time.Time) Report {
	rows := map[string]*Row{}
	rep := Report{By: q.By, Since: q.Since, Until: q.Until, Rows: []Row{}, Total: Row{Key: "total"}}
	for i := range b.Attempts {
		a := &b.Attempts[i]
		if !a.called() || a.At.Before(q.Since) || !q.Until.IsZero() && !a.At.Before(q.Until) {
			continue
		}
		key := q.By.key(a)
		row := rows[key]
		if row == nil {
			row = &Row{Key: key}
			if q.By == ByIntent {
				row.Title = b.Titles[a.Key]
				b.limit(row, a.Key)
			}
			rows[key] = row
		}
		row.add(a)
		rep.Total.add(a)
	}
	for _, row := range rows {
		rep.Rows = append(rep.Rows, *row)
	}
	slices.SortFunc(rep.Rows, func(x, y Row) int {
		if q.By == ByDay {
			return strings.Compare(x.Key, y.Key)
		}
		return cmp.Or(cmp.Compare(y.CostUSD, x.CostUSD), cmp.Compare(y.InputTokens+y.OutputTokens, x.InputTokens+x.OutputTokens),
			strings.Compare(x.Key, y.Key))
	})
	rep.Budgets = b.budgets(now)
	return rep
}

// limit sets the budget of an intent, for all its runs, and the rest of it. It
// uses the machines' own count, as the rules do.
func (b *Book) limit(row *Row, key forge.Key) {
	limit := cmp.Or(b.Limits[key], b.Budgets[key.Project].IntentUSD)
	if limit <= 0 {
		return
	}
	left := limit - b.Counted(key).CostUSD
	row.BudgetUSD, row.LeftUSD = &limit, &left
}

// budgets returns the limits of projects and of today. Every attempt counts,
// whatever the query.
func (b *Book) budgets(now time.Time) []Budget {
	spent, today := map[forge.ProjectID]float64{}, map[forge.ProjectID]float64{}
	for i := range b.Attempts {
		a := &b.Attempts[i]
		spent[a.Key.Project] += a.Usage.CostUSD
		if ByDay.key(a) == now.UTC().Format(time.DateOnly) {
			today[a.Key.Project] += a.Usage.CostUSD
		}
	}
	var list []Budget
	for project, budget := range b.Budgets {
		if of := budget.ProjectUSD; of > 0 {
			list = append(list, Budget{project, "project", of, spent[project], of - spent[project]})
		}
		if of := budget.DayUSD; of > 0 {
			list = append(list, Budget{project, "day", of, today[project], of - today[project]})
		}
	}
	slices.SortFunc(list, func(x, y Budget) int {
		return cmp.Or(strings.Compare(string(x.Project), string(y.Project)), strings.Compare(y.Of, x.Of))
	})
	return list
}
