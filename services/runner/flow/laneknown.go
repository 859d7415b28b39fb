package flow

import (
	"cmp"
	"slices"

	"github.com/pfl-forge/pfl-forge"
)

// Bounds of what a project knows and what a goal is told of it.
const (
	maxKnowledge = 500
	maxNew       = 100 // of them that are kept although they have helped nobody yet
	maxOffered   = 20
)

// know keeps what a goal found out, once, and counts what helped it.
func (l *Lane) know(e *forge.End) {
	if len(e.Knowledge) == 0 && len(e.Applied) == 0 {
		return
	}
	l.known = slices.Clone(l.known)
	for _, k := range e.Knowledge {
		if i := slices.IndexFunc(l.known, func(o forge.Knowledge) bool { return sameKnowledge(o, k) }); i >= 0 {
			if sureness(k.Confidence) > sureness(l.known[i].Confidence) {
				l.known[i].Confidence = k.Confidence
			}
			continue
		}
		l.known = append(l.known, k)
	}
	for _, id := range e.Applied {
		if i := slices.IndexFunc(l.known, func(k forge.Knowledge) bool { return k.ID == id }); i >= 0 {
			l.known[i].AppliedCount++
		}
	}
	for len(l.known) > maxKnowledge {
		least := leastWorth(l.known[:maxKnowledge-maxNew])
		l.known = slices.Delete(l.known, least, least+1)
	}
}

func sureness(c forge.Confidence) int {
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

// leastWorth is the index of what helped least, of that the least certain, of that the
// oldest.
func leastWorth(list []forge.Knowledge) int {
	least := 0
	for i := range list {
		if cmp.Or(cmp.Compare(list[i].AppliedCount, list[least].AppliedCount),
			cmp.Compare(sureness(list[i].Confidence), sureness(list[least].Confidence))) < 0 {
			least = i
		}
	}
	return least
}

// knowledgeFor lists what a goal may use: with most words of its title first, then the
// most certain, then what helped most.
func (l *Lane) knowledgeFor(m *member) []forge.Knowledge {
	type offer struct {
		forge.Knowledge
		fits int // words of the title
	}
	words := wordsOf(m.title)
	var all []offer
	for _, k := range l.known {
		o := offer{Knowledge: k}
		for w := range wordsOf(k.Category + " " + k.Content + " " + k.SourceTask + " " + k.ExampleFile) {
			if words[w] {
				o.fits++
			}
		}
		all = append(all, o)
	}
	slices.SortStableFunc(all, func(a, b offer) int {
		return cmp.Or(cmp.Compare(b.fits, a.fits), cmp.Compare(sureness(b.Confidence), sureness(a.Confidence)),
			cmp.Compare(b.AppliedCount, a.AppliedCount), b.CreatedAt.Compare(a.CreatedAt))
	})
	var list []forge.Knowledge
	for _, o := range all[:min(len(all), maxOffered)] {
		list = append(list, o.Knowledge)
	}
	return list
}
