package flow

import (
	"slices"
	"strings"
	"unicode"

	"github.com/pfl-forge/pfl-forge"
)

// Bounds of what a project remembers and what a run is told of it.
const (
	maxPast     = 300
	maxRelevant = 8
	maxObserved = 100 // runs that a search for patterns reads
)

// lesson is a run that ended, with the words of its title.
type lesson struct {
	forge.PastRun
	words []string
}

// learn keeps what others may learn from a run that ended, and what is to be
// reflected upon.
func (l *Lane) learn(id forge.IntentID, e *forge.RunEnded) {
	if e.Past != nil {
		l.past = last(append(l.past, lesson{PastRun: *e.Past, words: sortedWords(e.Past.Title)}), maxPast)
	}
	l.know(e)
	l.mirror.ended(id, e)
}

// relevant lists the earlier runs that an intent may learn from: those with most
// words of its title in common first, of equal ones the newest first.
func (l *Lane) relevant(m *member) []forge.PastRun {
	most, least := maxRelevant, 1
	if m.kind == forge.TypeSkillExtraction {
		most, least = maxObserved, 0
	}
	words := wordsOf(m.title)
	type scored struct {
		run   *forge.PastRun
		score int
	}
	var list []scored
	for i := range slices.Backward(l.past) {
		p := &l.past[i]
		score := 0
		for _, w := range p.words {
			if words[w] {
				score += 2
			}
		}
		if score > 0 && p.Outcome != forge.OutcomeSuccess {
			score++ // failures teach most
		}
		if score >= least {
			list = append(list, scored{&p.PastRun, score})
		}
	}
	slices.SortStableFunc(list, func(a, b scored) int { return b.score - a.score })
	var runs []forge.PastRun
	for _, s := range list[:min(len(list), most)] {
		runs = append(runs, *s.run)
	}
	return runs
}

// wordsOf is the set of a title's words, without those that say little.
func wordsOf(title string) map[string]bool {
	words := map[string]bool{}
	for _, w := range strings.FieldsFunc(strings.ToLower(title), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if len(w) > 3 {
			words[w] = true
		}
	}
	return words
}
