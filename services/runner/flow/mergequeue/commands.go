package mergequeue

import (
	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/rules"
)

// Commands makes the commands of a project's queue. Each is of the intent that
// asked for the merge, and issued by the project.
type Commands struct {
	*State

	Project forge.ProjectID
	// By are the rules that decide.
	By rules.Version
}

// Merge tells an implementer to merge, or to prove that the forge has merged,
// and a gateway to have the forge merge.
func (c Commands) Merge(m *Merge) forge.Command {
	if m.Press {
		return c.command(&m.Request, m.Attempt(), Pulls{c.State}.of(&m.Request).input())
	}
	found, in := m.Finding()
	if found == nil {
		found, in = m.Car.failure()
	}
	return c.command(&m.Request, m.Attempt(), &forge.MergeInput{
		Change: m.Change, Tried: found, In: in, Landed: m.Proving, Settle: c.By.Has(rules.SettledMerge),
		Over: Pulls{c.State}.over(&m.Request),
	})
}

// Trial tells an implementer to try a merge.
func (c Commands) Trial(q *Request) forge.Command {
	return c.command(q, q.Attempt(), &forge.MergeInput{Change: q.Change, Trial: true, Ahead: c.Ahead(q), Batch: len(q.Car.Riders)})
}

// Open tells a gateway to open the pull request of a change, or to bring it up
// to date.
func (c Commands) Open(q *Request) forge.Command {
	p := Pulls{c.State}.of(q)
	in := p.input()
	in.Answers = p.Answers()
	return c.command(q, p.attempt(q.Task), in)
}

// command returns a command about a request.
func (c Commands) command(q *Request, a forge.Attempt, in forge.Input) forge.Command {
	return forge.Command{To: forge.Key{Project: c.Project, Intent: q.Intent}, Attempt: a, Input: in}
}
