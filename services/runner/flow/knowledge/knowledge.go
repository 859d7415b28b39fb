// Package knowledge keeps the lessons of a project's finished runs: the runs
// themselves, and the findings of goals.
//
// Learn takes in a run that ended. RelevantRuns, ForGoal and ForOthers choose what the prompts of a
// new run say of earlier ones. Everything is bounded; the least useful goes first.
package knowledge

import (
	"cmp"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/words"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/rule"
)

// Bounds of the lists that a project keeps, and of the parts that an intent is told.
const (
	maxRuns = 300
	// maxRelevant bounds the past runs that an analysis is told of.
	maxRelevant = 8
	// maxAllRuns bounds the runs that a search for patterns reads.
	maxAllRuns   = 100
	maxKnowledge = 500
	// maxNew bounds the pieces of knowledge that are kept although they have
	// not helped yet.
	maxNew = 100
	// maxOffered bounds the pieces of knowledge that a goal is told of.
	maxOffered = 20
	// maxOfferedOthers bounds those that another intent is told of.
	maxOfferedOthers = 10
)

// State holds the lessons of a project's finished runs.
type State struct {
	// Runs are the newest finished runs, the oldest first.
	Runs []Run
	// Known are the findings of goals, and what people wrote, the oldest first.
	Known []forge.Knowledge
	// Forgotten are pieces that a person had the project forget, the oldest
	// first: they do not come back.
	Forgotten []forge.Knowledge
	// Taught counts the pieces that people added, for their ids.
	Taught int
}

// Run is a finished run, with the words of its title and files in order.
type Run struct {
	forge.PastRun
	Words []string
}

// Learn keeps the lessons of a run that ended. Knowledge that is there already is
// kept once, with the higher confidence.
func (s *State) Learn(e *forge.RunEnded) {
	if e.Past != nil {
		s.Runs = rule.Last(append(s.Runs, Run{PastRun: *e.Past, Words: words.Sorted(e.Past.Title + "\n" + strings.Join(e.Past.Files, "\n"))}), maxRuns)
	}
	if len(e.Knowledge) == 0 && len(e.Applied) == 0 {
		return
	}
	s.Known = slices.Clone(s.Known)
	for _, k := range e.Knowledge {
		if slices.ContainsFunc(s.Forgotten, same(k)) {
			continue
		}
		k.Author = "" // only people have a name here
		if i := slices.IndexFunc(s.Known, func(o forge.Knowledge) bool { return rule.SameKnowledge(o, k) }); i >= 0 {
			if rank(k.Confidence) > rank(s.Known[i].Confidence) {
				s.Known[i].Confidence = k.Confidence
			}
			continue
		}
		s.Known = append(s.Known, k)
	}
	for _, id := range e.Applied {
		if i := slices.IndexFunc(s.Known, func(k forge.Knowledge) bool { return k.ID == id }); i >= 0 {
			s.Known[i].AppliedCount++
		}
	}
	s.bound()
}

// bound forgets the pieces that are worth least, until no more are known than are allowed.
func (s *State) bound() {
	for len(s.Known) > maxKnowledge {
		least := leastWorth(s.Known[:maxKnowledge-maxNew])
		s.Known = slices.Delete(s.Known, least, least+1)
	}
}

// same returns the function that reports whether another piece says the same.
func same(k forge.Knowledge) func(forge.Knowledge) bool {
	return func(o forge.Knowledge) bool { return rule.SameKnowledge(o, k) }
}

// rank orders confidences, the surest highest.
func rank(c forge.Confidence) int {
	switch c {
	case forge.ConfidenceHigh:
		return 3
	case forge.ConfidenceMedium:
		return 2
	case forge.ConfidenceLow:
		return 1
	}
	return 0
}

// leastWorth returns the index of the piece that no person wrote and that
// helped least; among equals, of the least certain; among those, of the oldest.
func leastWorth(list []forge.Knowledge) int {
	least := 0
	written := func(k forge.Knowledge) int { return min(1, len(k.Author)) }
	for i := range list {
		if cmp.Or(cmp.Compare(written(list[i]), written(list[least])), cmp.Compare(list[i].AppliedCount, list[least].AppliedCount),
			cmp.Compare(rank(list[i].Confidence), rank(list[least].Confidence))) < 0 {
			least = i
		}
	}
	return least
}

// ForGoal returns the knowledge that a goal may use, by the text that says what it is about:
// the pieces with most words of it first, then the most certain, then those that helped
// most, then the newest.
func (s *State) ForGoal(about string) []forge.Knowledge {
	var list []forge.Knowledge
	all := s.offers(about)
	for _, o := range all[:min(len(all), maxOffered)] {
		list = append(list, o.Knowledge)
	}
	return list
}

// ForOthers returns the knowledge for an intent that is no goal, in the same order: only
// pieces that have words in common with it.
func (s *State) ForOthers(about string) []forge.Knowledge {
	var list []forge.Knowledge
	for _, o := range s.offers(about) {
		if o.words > 0 && len(list) < maxOfferedOthers {
			list = append(list, o.Knowledge)
		}
	}
	return list
}

// About returns everything that is known, in the same order.
func (s *State) About(about string) []forge.Knowledge {
	var list []forge.Knowledge
	for _, o := range s.offers(about) {
		list = append(list, o.Knowledge)
	}
	return list
}

// offer is a piece of knowledge with the number of words that it has in common with an intent.
type offer struct {
	forge.Knowledge
	words int
}

// offers returns all knowledge, the most relevant first.
func (s *State) offers(about string) []offer {
	wanted := words.Set(about)
	var all []offer
	for _, k := range s.Known {
		text := strings.Join([]string{k.Category, k.Content, k.SourceTask, k.ExampleFile}, "\n")
		all = append(all, offer{k, words.Common(words.Sorted(text), wanted)})
	}
	slices.SortStableFunc(all, func(a, b offer) int {
		return cmp.Or(cmp.Compare(b.words, a.words), cmp.Compare(rank(b.Confidence), rank(a.Confidence)),
			cmp.Compare(b.AppliedCount, a.AppliedCount), b.CreatedAt.Compare(a.CreatedAt))
	})
	return all
}

// RelevantRuns returns the finished runs that an intent may learn from, by the text that
// says what it is about: those with most words of it in their titles and files first,
// failures before successes, of equal ones the newest first. A search for patterns is
// told of runs that share no word as well.
func (s *State) RelevantRuns(about, intentType string) []forge.PastRun {
	most, least := maxRelevant, 1
	if intentType == forge.TypeSkillExtraction {
		most, least = maxAllRuns, 0
	}
	wanted := words.Set(about)
	type scored struct {
		run   *forge.PastRun
		score int
	}
	var list []scored
	for i := range slices.Backward(s.Runs) {
		r := &s.Runs[i]
		score := 2 * words.Common(r.Words, wanted)
		if score > 0 && r.Outcome != forge.OutcomeSuccess {
			score++ // failures teach most
		}
		if score >= least {
			list = append(list, scored{&r.PastRun, score})
		}
	}
	slices.SortStableFunc(list, func(a, b scored) int { return b.score - a.score })
	var runs []forge.PastRun
	for _, r := range list[:min(len(list), most)] {
		runs = append(runs, *r.run)
	}
	return runs
}
