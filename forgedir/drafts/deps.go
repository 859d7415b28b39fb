package drafts

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/forgedir/person"
)

// CheckDependencies separates drafts whose dependencies can end from those
// that wait for an intent that does not exist, for themselves, or for a draft
// that is refused here. Known is every intent there is, with what each depends
// on. The accepted drafts come in an order in which each follows those that it
// depends on.
func CheckDependencies(drafts []person.Input, known map[forge.IntentID][]forge.IntentID) ([]person.Input, []person.Problem) {
	g := newGraph(drafts, known)
	var problems []person.Problem
	// Each draft on a cycle is told the cycle, beginning with itself.
	for _, id := range g.order {
		if cycle := g.cycle(id); cycle != nil && !g.again[id] {
			problems = append(problems, g.refuse(id, cycle[1], "waits for itself: "+chain(cycle), "remove one of these dependencies"))
		}
	}
	// A refused draft takes along those that wait for it, until no more are found.
	for again := true; again; {
		again = false
		for _, id := range g.order {
			if missing := g.missing(id); missing != "" && !g.refused[id] && !g.again[id] {
				reason, hint := fmt.Sprintf("there is no intent %s", missing), "correct the id, or write that draft too"
				if _, drafted := g.drafts[missing]; drafted {
					reason, hint = fmt.Sprintf("waits for %s, which is refused", missing), "fix that draft first"
				}
				problems = append(problems, g.refuse(id, missing, reason, hint))
				again = true
			}
		}
	}
	return g.accepted(), problems
}

// graph has the drafts and the intents that exist, with the dependencies of both.
type graph struct {
	drafts map[forge.IntentID]*person.Input
	needs  map[forge.IntentID][]forge.IntentID
	order  []forge.IntentID // of the drafts
	// again are the drafts of intents that exist: these are never refused here, since the
	// runner knows whether they are the same.
	again   map[forge.IntentID]bool
	refused map[forge.IntentID]bool
}

// newGraph takes the dependencies of an intent that exists from known, not from its
// draft.
func newGraph(drafts []person.Input, known map[forge.IntentID][]forge.IntentID) *graph {
	g := &graph{
		drafts: map[forge.IntentID]*person.Input{}, needs: map[forge.IntentID][]forge.IntentID{},
		refused: map[forge.IntentID]bool{}, again: map[forge.IntentID]bool{},
	}
	maps.Copy(g.needs, known)
	for i := range drafts {
		id := drafts[i].Intent
		g.drafts[id], g.order = &drafts[i], append(g.order, id)
		if _, exists := known[id]; exists {
			g.again[id] = true
			continue
		}
		g.needs[id] = drafts[i].Draft().DependsOn
	}
	return g
}

// cycle returns the way from an intent back to itself, both ends included, or nil. It goes
// down each dependency first, and to no intent twice. A cycle that the start only leads
// to is not its own: that one is found from its members.
func (g *graph) cycle(start forge.IntentID) []forge.IntentID {
	seen := map[forge.IntentID]bool{}
	var walk func(path []forge.IntentID) []forge.IntentID
	walk = func(path []forge.IntentID) []forge.IntentID {
		for _, next := range g.needs[path[len(path)-1]] {
			if next == start {
				return append(path, next)
			}
			if seen[next] {
				continue
			}
			seen[next] = true
			if found := walk(append(slices.Clone(path), next)); found != nil {
				return found
			}
		}
		return nil
	}
	return walk([]forge.IntentID{start})
}

// missing returns the first dependency that will never exist: there is neither an intent
// nor a draft of it, or the draft is refused.
func (g *graph) missing(id forge.IntentID) forge.IntentID {
	for _, dep := range g.needs[id] {
		if _, exists := g.needs[dep]; !exists || g.refused[dep] {
			return dep
		}
	}
	return ""
}

// refuse refuses a draft because of one of its dependencies.
func (g *graph) refuse(id, dep forge.IntentID, reason, hint string) person.Problem {
	g.refused[id] = true
	in := g.drafts[id]
	field := fmt.Sprintf("depends_on[%d]", slices.Index(in.Draft().DependsOn, dep))
	return in.Problem(field, reason, hint)
}

// accepted returns the drafts that are left, dependencies first, and else in their order.
func (g *graph) accepted() []person.Input {
	var out []person.Input
	done := map[forge.IntentID]bool{}
	var visit func(id forge.IntentID)
	visit = func(id forge.IntentID) {
		in := g.drafts[id]
		if in == nil || done[id] || g.refused[id] {
			return
		}
		done[id] = true
		for _, dep := range g.needs[id] {
			visit(dep)
		}
		out = append(out, *in)
	}
	for _, id := range g.order {
		visit(id)
	}
	return out
}

// chain returns ids for people: a -> b -> a.
func chain(ids []forge.IntentID) string {
	return strings.ReplaceAll(strings.Trim(fmt.Sprint(ids), "[]"), " ", " -> ")
}
