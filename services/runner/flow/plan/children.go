package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/rule"
)

// maxChildren bounds how many intents one is split into.
const maxChildren = 50

// Child is an intent that another one was split into.
type Child struct {
	// Intent is the child as it is submitted.
	Intent forge.Intent
	// Run is the newest run that the project told of; 0: it has not begun.
	Run int
	// Ends is the number of the newest end of that run.
	Ends int
	// Status is how that run ended; empty: it has not.
	Status forge.Status
}

// Children are the intents that one was split into.
type Children []*Child

// Parent is an intent that is split.
type Parent struct {
	// Intent is the one that is split.
	Intent *forge.Intent
	// Number is that of the attempt that plans the children. Another attempt makes
	// others.
	Number int
	// MaxDepth bounds how deep intents are within intents.
	MaxDepth int
	// Whole says that all tasks of the intent are merged as one change.
	Whole bool
}

// split makes intents of what an analysis split an intent into.
func (p *Parent) split(plans []forge.ChildPlan) (Children, error) {
	switch {
	case len(plans) == 0:
		return nil, nil
	case p.Intent.Depth >= p.MaxDepth:
		return nil, fmt.Errorf("the intent may not be split any further (policy.max_depth is %d): plan tasks instead", p.MaxDepth)
	case len(plans) > maxChildren:
		return nil, fmt.Errorf("the analysis has %d child intents; at most %d are allowed", len(plans), maxChildren)
	}
	names, ids, err := p.names(plans)
	if err != nil {
		return nil, err
	}
	children := make(Children, 0, len(plans))
	for i := range plans {
		in := p.child(ids[names[i]], &plans[i])
		for _, d := range plans[i].DependsOn {
			id, ok := ids[d]
			if !ok {
				return nil, fmt.Errorf("child intent %q depends on %q, which is not in this plan", plans[i].Title, d)
			}
			in.DependsOn = append(in.DependsOn, id)
		}
		if e := in.Validate(); e != nil {
			return nil, fmt.Errorf("child intent %q: %w", names[i], e)
		}
		children = append(children, &Child{Intent: in})
	}
	id := func(c *Child) forge.IntentID { return c.Intent.ID }
	after := func(c *Child) []forge.IntentID { return c.Intent.DependsOn }
	if stuck := circle(children, id, after); stuck != nil {
		titles := make([]string, len(stuck))
		for i, c := range stuck {
			titles[i] = c.Intent.Title
		}
		return nil, fmt.Errorf("these child intents wait for each other: %s", strings.Join(titles, ", "))
	}
	return children, nil
}

// names returns the names of the children in order, and their ids by name.
func (p *Parent) names(plans []forge.ChildPlan) ([]string, map[string]forge.IntentID, error) {
	names, ids := make([]string, len(plans)), make(map[string]forge.IntentID, len(plans))
	for i := range plans {
		name := plans[i].Name
		if name == "" {
			name = strconv.Itoa(i + 1)
		}
		if _, dup := ids[name]; dup {
			return nil, nil, fmt.Errorf("two child intents are named %q", name)
		}
		names[i] = name
		ids[name] = forge.NewDerivedID(rule.Shorten(string(p.Intent.ID), 30)+" "+name, string(p.Intent.Project), string(p.Intent.ID),
			strconv.FormatInt(p.Intent.CreatedAt.UnixNano(), 10), strconv.Itoa(p.Number), strconv.Itoa(i))
	}
	return names, ids, nil
}

// child returns a child as it is submitted. It inherits who wanted it, and what a
// person chose for the parent.
func (p *Parent) child(id forge.IntentID, c *forge.ChildPlan) forge.Intent {
	in := p.Intent
	return forge.Intent{
		ID: id, Project: in.Project, Settings: forge.Settings{
			Title:      c.Title,
			Body:       c.Body,
			Type:       c.Type,
			Risk:       c.Risk,
			Attributes: in.Attributes,
			Agent:      in.Agent,
		}, Source: in.Source, Requesters: in.Requesters, Parent: in.ID, Depth: in.Depth + 1, Generation: in.Generation,
		Origin: forge.Origin{System: in.Origin.System, EventID: "part/" + string(id), Actor: in.Origin.Actor},
	}
}

// IDs returns the ids of the children.
func (l Children) IDs() []forge.IntentID {
	var ids []forge.IntentID
	for _, c := range l {
		ids = append(ids, c.Intent.ID)
	}
	return ids
}

// Changed applies news of a child of parent, and returns the child. On an
// error, which says why, nothing has changed.
func (l Children) Changed(parent forge.IntentID, c *forge.ChildChanged) (*Child, error) {
	i := slices.IndexFunc(l, func(x *Child) bool { return x.Intent.ID == c.Intent })
	if i < 0 {
		return nil, fmt.Errorf("%q is not a child intent of %q", c.Intent, parent)
	}
	child := l[i]
	if c.Run < child.Run || c.Run == child.Run && c.Number <= child.Ends {
		return nil, fmt.Errorf("what became of %q is known", c.Intent)
	}
	child.Run, child.Ends, child.Status = c.Run, c.Number, ""
	if c.Number > 0 {
		child.Status = c.Status
	}
	return child, nil
}

// Ended reports whether no child is under way.
func (l Children) Ended() bool {
	return !slices.ContainsFunc(l, func(c *Child) bool { return c.Status == "" })
}

// Done counts the children that are done.
func (l Children) Done() int {
	n := 0
	for _, c := range l {
		if c.Status == forge.StatusDone {
			n++
		}
	}
	return n
}

// Reason returns which child did not get done; empty if all did.
func (l Children) Reason() string {
	for _, c := range l {
		if c.Status != forge.StatusDone {
			return fmt.Sprintf("its child intent %q ended %s", c.Intent.ID, c.Status)
		}
	}
	return ""
}

// Summaries returns how far the children are.
func (l Children) Summaries() []forge.ChildSummary {
	var list []forge.ChildSummary
	for _, c := range l {
		sum := forge.ChildSummary{ID: c.Intent.ID, Title: c.Intent.Title, Status: c.Status}
		if sum.Status == "" && c.Run > 0 {
			sum.Status = forge.StatusExecuting
		}
		list = append(list, sum)
	}
	return list
}

// StatusOf returns the status of an intent of whose tasks or children so many are
// done: done if all are, error if none is, blocked otherwise.
func StatusOf(done, all int) forge.Status {
	switch done {
	case all:
		return forge.StatusDone
	case 0:
		return forge.StatusError
	}
	return forge.StatusBlocked
}
