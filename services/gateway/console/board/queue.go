package board

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
)

// mostCars bounds the changes that the board has of all merge queues together.
const mostCars = 20

// Queues tells of some projects what keeps their work waiting, and how far their merge queues are.
type Queues struct {
	Facts []Fact
	Cars  []Car
	// More counts the changes that there is no room for.
	More int
	// Silent are the projects of which this cannot be told now.
	Silent []forge.ProjectID
	// Basis says in words what estimates are made of; empty without any.
	Basis string
}

// Fact keeps all work of a project waiting, in words: Says, then since when and until
// when, then Why, the words of the origin or the account, and last what follows.
type Fact struct {
	Project   forge.ProjectID
	Says, Why string
	// Since is zero where that is not known, Until where it has no end that is known.
	Since, Until time.Time
	Then         string
}

// Car is a change in a merge queue.
type Car struct {
	document.QueuedChange
	Project forge.ProjectID
	// Title is that of the intent, where the board has it.
	Title string
	// Label is the state in words.
	Label string
	// Left says in words how long it takes; empty where nothing can be said.
	Left string
}

// Add adds the queue of a project, after those that were added before: projects are told
// in their own order, each with its facts first. Estimates are explained once, by those
// of the first project that has any. Titles are those of the intents that were read.
func (q *Queues) Add(p forge.ProjectID, d *document.Queue, all []document.State) {
	if d.Paused {
		q.Facts = append(q.Facts, Fact{Project: p, Says: "is paused", Then: "Nothing in it runs until it is resumed: pfl-forge resume --all."})
	}
	for _, f := range d.Facts {
		q.Facts = append(q.Facts, factOf(p, &f))
	}
	for i := range d.Changes {
		c := Car{QueuedChange: d.Changes[i], Project: p, Label: label(d.Changes[i].State)}
		if c.Seconds != nil {
			c.Left = Left(*c.Seconds)
		}
		q.Cars = append(q.Cars, c)
	}
	q.More += d.LeftOut
	if b := d.Basis; b != nil && q.Basis == "" {
		q.Basis = fmt.Sprintf("if each merge takes as long as the last %d", b.Merges)
		if b.Trials > 0 {
			q.Basis = fmt.Sprintf("if each trial and merge takes as long as the last %d and %d, and passes", b.Trials, b.Merges)
		}
	}
	if extra := len(q.Cars) - mostCars; extra > 0 {
		q.More += extra
		q.Cars = slices.Clip(q.Cars[:mostCars])
	}
	titles := map[forge.IntentID]string{}
	for i := range all {
		if all[i].Project == p {
			titles[all[i].Intent] = all[i].Title
		}
	}
	for i := range q.Cars {
		if c := &q.Cars[i]; c.Project == p {
			c.Title = cmp.Or(titles[c.Intent], string(c.Intent))
		}
	}
}

// factOf returns a fact in words.
func factOf(p forge.ProjectID, d *document.Fact) Fact {
	f := Fact{Project: p, Why: d.Why, Since: d.Since, Then: "It continues when that is over."}
	if d.Until != nil {
		f.Until = *d.Until
	}
	switch d.Fact {
	case forge.FailOrigin:
		f.Says, f.Then = "cannot reach its git origin", "Everything continues when it answers."
	case forge.FailPush:
		f.Says, f.Then = "may not push to its git origin", "Pushes are retried from time to time."
	case forge.FailBase:
		f.Says, f.Then = "has a red base branch", "Everything that would be verified continues when it passes."
	case forge.FailQuota:
		f.Says = "calls no agent of " + d.Of + ", whose account is at its limit"
	case forge.FailAuth:
		f.Says, f.Then = "calls no agent of "+d.Of+", whose account refuses", "When that is fixed: pfl-forge resume --all."
	default:
		f.Says = "waits for " + d.Of
	}
	return f
}

// label returns the state of a change in words.
func label(s document.QueueState) string {
	switch s {
	case document.QueueMerging:
		return "merging"
	case document.QueueTrying:
		return "being verified"
	case document.QueueRiding:
		return "in a batch"
	case document.QueuePassed:
		return "passed"
	case document.QueueStopped:
		return "did not pass"
	case document.QueuePull:
		return "pull request"
	case document.QueueQueued:
	}
	return "waits"
}

// Left returns an estimate in words.
func Left(seconds int) string {
	switch minutes := (seconds + 30) / 60; {
	case seconds < 5:
		return "at any moment"
	case seconds < 60:
		return fmt.Sprintf("in about %d s", seconds)
	case minutes < 60:
		return fmt.Sprintf("in about %d min", minutes)
	case minutes < 48*60:
		return fmt.Sprintf("in about %d h %d min", minutes/60, minutes%60)
	default:
		return fmt.Sprintf("in about %d days", minutes/60/24)
	}
}
