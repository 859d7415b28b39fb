package document

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
)

// CostGroup says what a row of costs is about.
type CostGroup string

// The groups: a closed set.
const (
	CostsByIntent    CostGroup = "intent"
	CostsByTask      CostGroup = "task" // the intent for an attempt that is about all of it
	CostsByStep      CostGroup = "step"
	CostsByAgent     CostGroup = "agent"
	CostsByModel     CostGroup = "model"
	CostsByDay       CostGroup = "day" // such as 2026-03-01, UTC
	CostsByRequester CostGroup = "requester"
	CostsByType      CostGroup = "type"
	CostsByProject   CostGroup = "project"
)

// CostGroups returns every group.
func CostGroups() []CostGroup {
	return []CostGroup{
		CostsByIntent, CostsByTask, CostsByStep, CostsByAgent, CostsByModel, CostsByDay, CostsByRequester, CostsByType, CostsByProject,
	}
}

// ParseCostGroup returns s as a group. Its error lists the groups.
func ParseCostGroup(s string) (CostGroup, error) {
	if slices.Contains(CostGroups(), CostGroup(s)) {
		return CostGroup(s), nil
	}
	var names []string
	for _, by := range CostGroups() {
		names = append(names, string(by))
	}
	return "", fmt.Errorf("is %q; it can be %s", s, strings.Join(names, ", "))
}

// CostsRequest asks what the agents of a project used in a time.
type CostsRequest struct {
	// By says of which groups there are rows; empty stands for day.
	By CostGroup `json:"by,omitempty"`
	// Since, if not zero, leaves out attempts that were decided on before, and Until those that
	// were decided on then or later.
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero"`
}

// Check returns the mistakes of the request, by field.
func (r *CostsRequest) Check() (wrong []forge.FieldError) {
	if _, err := ParseCostGroup(cmp.Or(string(r.By), string(CostsByDay))); err != nil {
		wrong = append(wrong, forge.FieldError{Field: "by", Reason: err.Error()})
	}
	if !r.Until.IsZero() && !r.Until.After(r.Since) {
		wrong = append(wrong, forge.FieldError{Field: "until", Reason: "is not after since"})
	}
	return wrong
}

// Of returns no intent: the costs are those of a project.
func (r *CostsRequest) Of() forge.IntentID { return "" }

// Costs has the usage of attempts that called an agent, grouped. A recipe calls none. An attempt
// counts when it has ended.
type Costs struct {
	By    CostGroup `json:"by"             yaml:"by"`
	Since time.Time `json:"since,omitzero" yaml:"since,omitempty"`
	Until time.Time `json:"until,omitzero" yaml:"until,omitempty"`
	// Rows are the most expensive first; days in their order.
	Rows []CostRow `json:"rows" yaml:"rows"`
	// Others adds up the rows that an answer has no room for; days before the others.
	Others *CostRow `json:"others,omitempty" yaml:"others,omitempty"`
	// Total has all of them.
	Total CostRow `json:"total" yaml:"total"`
	// Budgets are those of the project, whatever the time that is asked for.
	Budgets []CostBudget `json:"budgets,omitempty" yaml:"budgets,omitempty"`
}

// CostRow adds up the usage of some attempts. Costs are in US dollars, as the agents reported them.
type CostRow struct {
	// Key is the group's name; empty: it is not known, such as the model where an agent tells none.
	Key string `json:"key" yaml:"key"`
	// Title is that of the intent, in rows of intents.
	Title string `json:"title,omitempty" yaml:"title,omitempty"`
	// Attempts counts those that ended, whatever their outcome; Calls counts
	// the starts of agent programs in them, Turns the messages of models.
	Attempts int   `json:"attempts" yaml:"attempts"`
	Calls    int64 `json:"calls"    yaml:"calls"`
	Turns    int64 `json:"turns"    yaml:"turns"`
	// InputTokens were sent and not cached. Those that were read from a cache,
	// or written to one, have prices of their own and are in none of the others.
	InputTokens      int64 `json:"input_tokens"       yaml:"input_tokens"`
	OutputTokens     int64 `json:"output_tokens"      yaml:"output_tokens"`
	CacheReadTokens  int64 `json:"cache_read_tokens"  yaml:"cache_read_tokens"`
	CacheWriteTokens int64 `json:"cache_write_tokens" yaml:"cache_write_tokens"`
	// Seconds adds up the durations of the attempts. Some run side by side, so
	// it can be more than has gone by.
	Seconds float64 `json:"seconds"  yaml:"seconds"`
	CostUSD float64 `json:"cost_usd" yaml:"cost_usd"`
	// BudgetUSD is the limit of an intent for all its runs, LeftUSD what is left
	// of it, below 0 if it was overspent; in rows of intents that have one.
	BudgetUSD *float64 `json:"budget_usd,omitempty" yaml:"budget_usd,omitempty"`
	LeftUSD   *float64 `json:"left_usd,omitempty"   yaml:"left_usd,omitempty"`
}

// Add adds the usage of one attempt.
func (r *CostRow) Add(u forge.Usage, took time.Duration) {
	r.Attempts++
	r.Calls += u.Calls
	r.Turns += u.Turns
	r.InputTokens += u.InputTokens
	r.OutputTokens += u.OutputTokens
	r.CacheReadTokens += u.CacheReadTokens
	r.CacheWriteTokens += u.CacheWriteTokens
	r.Seconds += took.Seconds()
	r.CostUSD = min(max(r.CostUSD+u.CostUSD, -math.MaxFloat64), math.MaxFloat64) // an infinite sum could not be answered
}

// Merge adds another row.
func (r *CostRow) Merge(o *CostRow) {
	attempts := r.Attempts + o.Attempts
	r.Add(forge.Usage{
		InputTokens: o.InputTokens, OutputTokens: o.OutputTokens, CacheReadTokens: o.CacheReadTokens, CacheWriteTokens: o.CacheWriteTokens,
		CostUSD: o.CostUSD, Turns: o.Turns, Calls: o.Calls,
	}, time.Duration(o.Seconds*float64(time.Second)))
	r.Attempts = attempts
}

// CostBudget is a limit of a project with what is left of it.
type CostBudget struct {
	Project forge.ProjectID `json:"project" yaml:"project"`
	// Of is project, or day for today in UTC.
	Of        string  `json:"of"         yaml:"of"`
	BudgetUSD float64 `json:"budget_usd" yaml:"budget_usd"`
	SpentUSD  float64 `json:"spent_usd"  yaml:"spent_usd"`
	LeftUSD   float64 `json:"left_usd"   yaml:"left_usd"` // below 0 if it was overspent
}

// CostRowsShown bounds the rows of an answer to a request.
const CostRowsShown = 200

// Bound keeps as many rows as an answer has room for, and adds up the others.
func (c *Costs) Bound() {
	extra := len(c.Rows) - CostRowsShown
	if extra <= 0 {
		return
	}
	others := c.Rows[CostRowsShown:]
	if c.By == CostsByDay { // the newest are asked for
		others, c.Rows = c.Rows[:extra], c.Rows[extra:]
	} else {
		c.Rows = c.Rows[:CostRowsShown]
	}
	c.Others = &CostRow{Key: "others"}
	for i := range others {
		c.Others.Merge(&others[i])
	}
}
