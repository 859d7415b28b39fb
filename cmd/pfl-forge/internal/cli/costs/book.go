// Package costs adds up the usage of agents. A Book has every attempt that called one, as
// the journals tell of it; a Report groups it by intent, step, agent, day and so on; the command
// prints the report, and show prints the attempts of a task.
package costs

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/journal"
	"github.com/pfl-forge/pfl-forge/internal/rules"
	"github.com/pfl-forge/pfl-forge/services/runner/machine"
	"github.com/pfl-forge/pfl-forge/services/runner/report"
)

// Attempt is one attempt of a step that was decided on, and what its calls used.
type Attempt struct {
	forge.Attempt
	// Key is the intent.
	Key forge.Key
	// Outcome is ok, rejected, conflict, verify_failed, no_commits, unwanted,
	// or a forge.FailureReason.
	Outcome  string
	Agent    string
	Model    string
	Session  string
	Executor forge.Executor
	Duration time.Duration
	Usage    forge.Usage
	// At is the time at which it was decided on.
	At time.Time
}

// Book has every attempt, title and budget that the journals of some projects tell of. The
// zero value is empty.
type Book struct {
	// Attempts are in the order of their decisions.
	Attempts []Attempt
	// Titles are those of the intents.
	Titles map[forge.Key]string
	// Budgets are the projects' limits, as the last analysis read them.
	Budgets map[forge.ProjectID]forge.Budget
	// Limits are budgets that intents have of their own, in US dollars.
	Limits map[forge.Key]float64

	// machines fold the journals, so that an attempt counts here exactly if it
	// counts there.
	machines map[forge.Key]machine.Machine
}

// Read reads the journals of a project, or of all projects if it is empty.
func Read(ctx context.Context, b *bus.Bus, project forge.ProjectID) (*Book, error) {
	book := new(Book)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	err := b.Journal.Follow(ctx, project, 0, journal.Follower{
		Record: func(key forge.Key, _ uint64, rec forge.Record) error {
			book.Add(key, &rec)
			return nil
		},
		CaughtUp: func() error {
			stop()
			return nil
		},
	})
	return book, err
}

// Add adds the next record of an intent's journal; those of projects say nothing.
func (b *Book) Add(key forge.Key, rec *forge.Record) {
	if key.IsProject() {
		return
	}
	if b.machines == nil {
		b.machines = map[forge.Key]machine.Machine{}
		b.Titles, b.Limits = map[forge.Key]string{}, map[forge.Key]float64{}
		b.Budgets = map[forge.ProjectID]forge.Budget{}
	}
	m := b.machines[key]
	if m == nil {
		m = machine.New(key)
		b.machines[key] = m
	}
	for i := range rec.Events {
		b.event(key, m, rules.Of(rec), &rec.Events[i])
	}
	b.Titles[key] = rec.Summary.Title
}

// event counts the attempts that the state machine counts: one that is reported twice, or
// that costs nothing, does not count.
func (b *Book) event(key forge.Key, m machine.Machine, by rules.Version, ev *forge.Event) {
	switch msg := ev.Message.(type) {
	case *forge.Submit:
		if msg.Intent.BudgetUSD > 0 {
			b.Limits[key] = msg.Intent.BudgetUSD
		}
	case *forge.Retry:
		if msg.BudgetUSD > 0 {
			b.Limits[key] = msg.BudgetUSD
		}
	case *forge.RunReflected:
		b.reflected(key, m, by, ev, &msg.Step)
		return
	case *forge.Result:
		if !msg.IsStart() {
			b.result(key, m, by, ev, msg)
			return
		}
	default:
	}
	m.Step(by, *ev)
}

// result counts an attempt that ended.
func (b *Book) result(key forge.Key, m machine.Machine, by rules.Version, ev *forge.Event, r *forge.Result) {
	before := m.Summary()
	m.Step(by, *ev)
	after := m.Summary()
	wanted := before.Wants(r.Attempt)
	if !wanted && after.Usage == before.Usage {
		return
	}
	if out := forge.As[*forge.Analysis](r.Output); out != nil && out.Policy != nil {
		b.Budgets[key.Project] = out.Policy.Budget
	} else if r.Policy != nil {
		b.Budgets[key.Project] = r.Policy.Budget
	}
	a := Attempt{
		Attempt: r.Attempt, Key: key, Outcome: report.Outcome(r), Agent: r.Agent, Model: r.Model, Session: r.Session,
		Executor: r.Executor, Duration: r.Duration, Usage: r.Usage, At: ev.At,
	}
	if !wanted {
		a.Outcome = "unwanted"
	}
	b.Attempts = append(b.Attempts, a)
}

// reflected counts a reflection, whose result is the project's, where an intent is told of it.
func (b *Book) reflected(key forge.Key, m machine.Machine, by rules.Version, ev *forge.Event, s *forge.StepRecord) {
	before := m.Summary()
	m.Step(by, *ev)
	after := m.Summary()
	if after.Usage == before.Usage {
		return
	}
	b.Attempts = append(b.Attempts, Attempt{
		Attempt: forge.Attempt{Step: s.Step, Number: s.Attempt, Claim: 1}, Key: key, Outcome: s.Outcome,
		Agent: s.Agent, Model: s.Model, Session: s.Session, Executor: s.Executor, Duration: s.Duration, Usage: s.Usage, At: ev.At,
	})
}

// Counted returns the usage that the state machines themselves have counted for an intent.
func (b *Book) Counted(key forge.Key) forge.Usage {
	m := b.machines[key]
	if m == nil {
		return forge.Usage{}
	}
	s := m.Summary()
	return s.Usage
}

// By names the groups that a Report has rows for.
type By string

// What a Report can have rows for.
const (
	ByIntent  By = "intent"
	ByTask    By = "task"
	ByStep    By = "step"
	ByAgent   By = "agent"
	ByModel   By = "model"
	ByDay     By = "day" // UTC
	ByProject By = "project"
)

// Bys lists them.
func Bys() []By { return []By{ByIntent, ByTask, ByStep, ByAgent, ByModel, ByDay, ByProject} }

// ParseBy returns s as what a Report can have rows for.
func ParseBy(s string) (By, error) {
	for _, by := range Bys() {
		if string(by) == s {
			return by, nil
		}
	}
	var names []string
	for _, by := range Bys() {
		names = append(names, string(by))
	}
	return "", fmt.Errorf("is %q; it can be %s", s, strings.Join(names, ", "))
}

// key returns the group of an attempt; empty if it is not known, such as the
// model of a recipe.
func (by By) key(a *Attempt) string {
	switch by {
	case ByIntent:
		return string(a.Key.Intent)
	case ByTask:
		if a.Task == "" {
			return string(a.Key.Intent)
		}
		return string(a.Task)
	case ByStep:
		return string(a.Step)
	case ByAgent:
		return a.Agent
	case ByModel:
		return a.Model
	case ByDay:
		return a.At.UTC().Format(time.DateOnly)
	case ByProject:
		return string(a.Key.Project)
	}
	return ""
}
