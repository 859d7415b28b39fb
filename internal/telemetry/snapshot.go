package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/pfl-forge/pfl-forge"
)

// freshFor is how long a snapshot is shown.
const freshFor = time.Minute

// Snapshot is the state of an installation at one moment, which is the same whoever reads
// it. It is filled by one goroutine, and then shown.
type Snapshot struct {
	// at is when it was begun, from which on it grows old.
	at time.Time
	// names are those of its Recorder: projects that are not known are added up as other.
	names *names
	// shares are those of projects, by the attribute that names them.
	shares map[attribute.KeyValue]*share
	// depth and active count the commands of each step.
	depth, active map[forge.Step]int
	// dead counts the dead letters, up to the bound of whoever reads them.
	dead int
	// copies counts the copies of streams that are missing.
	copies int
}

// NewSnapshot returns an empty snapshot of the present. It is shown for a minute.
func (r *Recorder) NewSnapshot() *Snapshot {
	return &Snapshot{
		at: time.Now(), names: &r.names, shares: map[attribute.KeyValue]*share{}, depth: map[forge.Step]int{}, active: map[forge.Step]int{},
	}
}

// Intent adds an intent.
func (s *Snapshot) Intent(p forge.ProjectID, status forge.Status, waits forge.Waiting, createdAt time.Time) {
	// An intent of a project that is not known counts as one of other projects.
	s.share(p).add(status, waits, createdAt)
}

// Project adds the queue and the account of a project; nil adds nothing.
func (s *Snapshot) Project(p forge.ProjectID, what *forge.ProjectSummary) {
	if what == nil { // a former version wrote it
		return
	}
	// All unknown projects share one entry, so values are added.
	one := s.share(p)
	one.merges += what.Merges
	for _, c := range what.Closed {
		if c.Until.IsZero() || c.Until.After(s.at) { // a quota is over by its time, without any event
			one.facts[c.Reason]++
		}
	}
	// A budget that is overdrawn has nothing left, instead of a debt that hides the rest of
	// another project.
	if limit := what.Limits.ProjectUSD; limit > 0 {
		one.left[ofProject] += max(0, limit-what.SpentUSD)
	}
	if limit := what.Limits.DayUSD; limit > 0 {
		if s.at.Unix()/(24*60*60) == what.Day { // otherwise nothing was spent today
			limit = max(0, limit-what.TodayUSD)
		}
		one.left[ofDay] += limit
	}
}

// Queue adds the commands of a step: those that no worker has taken yet, and those that one
// has.
func (s *Snapshot) Queue(step forge.Step, waiting, active int) {
	s.depth[step] += waiting
	s.active[step] += active
}

// DeadLetters sets the number of messages that could not be handled.
func (s *Snapshot) DeadLetters(n int) { s.dead = n }

// MissingCopies sets the number of copies of streams that are missing.
func (s *Snapshot) MissingCopies(n int) { s.copies = n }

// share returns the part of a project.
func (s *Snapshot) share(p forge.ProjectID) *share {
	name := s.names.project(p)
	if s.shares[name] == nil {
		s.shares[name] = &share{
			status: map[forge.Status]int{}, waiting: map[forge.Waiting]int{}, oldest: map[string]time.Time{}, left: map[string]float64{},
			facts: map[forge.FailureReason]int{},
		}
	}
	return s.shares[name]
}

// Show makes a snapshot the one that is read; nil: none is. It replaces the one before.
func (r *Recorder) Show(s *Snapshot) {
	if r != nil {
		r.shown.Store(s)
	}
}

// share has the figures of one project, or of all that are not known.
type share struct {
	status  map[forge.Status]int
	waiting map[forge.Waiting]int
	// oldest is when the oldest intent was submitted for which the system, and a person,
	// has to go on; zero if there is none.
	oldest map[string]time.Time
	merges int
	left   map[string]float64
	// facts counts the reasons for which work of the project waits.
	facts map[forge.FailureReason]int
}

// add counts an intent.
func (s *share) add(status forge.Status, waits forge.Waiting, createdAt time.Time) {
	s.status[status]++
	who := forSystem
	switch {
	case waits != "":
		s.waiting[waits]++
		who = forPerson
	case status.Ended():
		return
	}
	if at := s.oldest[who]; at.IsZero() || createdAt.Before(at) {
		s.oldest[who] = createdAt
	}
}

// observables returns the gauges that show a snapshot.
func (r *Recorder) observables() (list []metric.Observable) {
	for i, g := range r.gauges {
		if i.Across == Max {
			list = append(list, g)
		}
	}
	return list
}

// observeSnapshot tells an observer everything that the shown snapshot has, unless it is old.
func (r *Recorder) observeSnapshot(_ context.Context, o metric.Observer) error {
	s := r.shown.Load()
	if s == nil || time.Since(s.at) > freshFor {
		return nil
	}
	set := func(i *Instrument, value float64, attrs ...attribute.KeyValue) {
		o.ObserveFloat64(r.gauges[i], value, metric.WithAttributes(attrs...))
	}
	for project, one := range s.shares {
		one.observe(set, project, s.at)
	}
	for _, step := range forge.Steps() {
		set(queueDepth, float64(s.depth[step]), of(attrStep, step))
		set(queueActive, float64(s.active[step]), of(attrStep, step))
	}
	set(deadLetters, float64(s.dead))
	set(copiesMissing, float64(s.copies))
	return nil
}

// observe tells an observer the part of a project.
func (s *share) observe(set func(*Instrument, float64, ...attribute.KeyValue), project attribute.KeyValue, at time.Time) {
	for _, status := range statuses {
		set(intents, float64(s.status[status]), project, of(attrStatus, status))
	}
	for _, what := range waitings {
		set(waiting, float64(s.waiting[what]), project, of(attrWaiting, what))
	}
	for _, who := range attrFor.Values {
		age := time.Duration(0)
		if since := s.oldest[who]; !since.IsZero() {
			age = max(0, at.Sub(since))
		}
		set(oldest, age.Seconds(), project, of(attrFor, who))
	}
	set(mergeQueue, float64(s.merges), project)
	for _, reason := range projectFacts {
		set(facts, float64(s.facts[reason]), project, of(attrFact, reason))
	}
	for what, usd := range s.left {
		set(budgetLeft, usd, project, of(attrScope, what))
	}
}
