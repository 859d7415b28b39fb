// Package knowledge keeps the lessons of a project's finished runs: the runs
// themselves, and the findings of goals.
//
// Learn takes in a run that ended. RelevantRuns and ForGoal choose what the prompts of a
// new run say of earlier ones. Everything is bounded; the least useful goes first.
package knowledge

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"github.com/pfl-forge/pfl-forge"
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
)

// State holds the lessons of a project's finished runs.
type State struct {
	// Runs are the newest finished runs, the oldest first.
	Runs []Run
	// Known are the findings of goals, the oldest first.
	Known []forge.Knowledge
}

// Run is a finished run, with the words of its title in order.
type Run struct {
	forge.PastRun
	Words []string
}

// Learn keeps the lessons of a run that ended. Knowledge that is there already is
// kept once, with the higher confidence.
func (s *State) Learn(e *forge.RunEnded) {
	if e.Past != nil {
		s.Runs = rule.Last(append(s.Runs, Run{PastRun: *e.Past, Words: SortedWords(e.Past.Title)}), maxRuns)
	}
	if len(e.Knowledge) == 0 && len(e.Applied) == 0 {
		return
	}
	s.Known = slices.Clone(s.Known)
	for _, k := range e.Knowledge {
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
	for len(s.Known) > maxKnowledge {
		least := leastWorth(s.Known[:maxKnowledge-maxNew])
		s.Known = slices.Delete(s.Known, least, least+1)
	}
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

// leastWorth returns the index of the piece that helped least; among equals, of the
// least certain; among those, of the oldest.
func leastWorth(list []forge.Knowledge) int {
	least := 0
	for i := range list {
		if cmp.Or(cmp.Compare(list[i].AppliedCount, list[least].AppliedCount),
			cmp.Compare(rank(list[i].Confidence), rank(list[least].Confidence))) < 0 {
			least = i
		}
	}
	return least
}

// ForGoal returns the knowledge that a goal with this title may use: the pieces with
// most words of the title first, then the most certain, then those that helped most,
// then the newest.
func (s *State) ForGoal(title string) []forge.Knowledge {
	type offer struct {
		forge.Knowledge
		words int // of the title
	}
	wanted := words(title)
	var all []offer
	for _, k := range s.Known {
		o := offer{Knowledge: k}
		for w := range words(k.Category + " " + k.Content + " " + k.SourceTask + " " + k.ExampleFile) {
			if wanted[w] {
				o.words++
			}
		}
		all = append(all, o)
	}
	slices.SortStableFunc(all, func(a, b offer) int {
		return cmp.Or(cmp.Compare(b.words, a.words), cmp.Compare(rank(b.Confidence), rank(a.Confidence)),
			cmp.Compare(b.AppliedCount, a.AppliedCount), b.CreatedAt.Compare(a.CreatedAt))
	})
	var list []forge.Knowledge
	for _, o := range all[:min(len(all), maxOffered)] {
		list = append(list, o.Knowledge)
	}
	return list
}

// RelevantRuns returns the finished runs that an intent may learn from: those
// with most words of its title first, failures before successes, of equal ones the
// newest first. A search for patterns is told of runs that share no word as well.
func (s *State) RelevantRuns(title, intentType string) []forge.PastRun {
	most, least := maxRelevant, 1
	if intentType == forge.TypeSkillExtraction {
		most, least = maxAllRuns, 0
	}
	wanted := words(title)
	type scored struct {
		run   *forge.PastRun
		score int
	}
	var list []scored
	for i := range slices.Backward(s.Runs) {
		r := &s.Runs[i]
		score := 0
		for _, w := range r.Words {
			if wanted[w] {
				score += 2
			}
		}
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

// words returns the set of a text's words, without the short ones.
func words(text string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if len(w) > 3 {
			set[w] = true
		}
	}
	return set
}

// SortedWords returns a title's words, in order and each once; the title itself if
// all of its words are short.
func SortedWords(title string) []string {
	set := words(title)
	list := make([]string, 0, len(set))
	for w := range set {
		list = append(list, w)
	}
	slices.Sort(list)
	if len(list) == 0 {
		list = append(list, title)
	}
	return list
}
