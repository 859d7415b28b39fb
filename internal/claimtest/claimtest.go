// Package claimtest makes claims for tests: honest ones, and ones that lie in a named way.
//
// Tests of the rules, the runner and the CLI go through Ways, so that every
// place that counts claims refuses every kind of lie. A new kind of evidence
// gets its lie here, and those tests fail until it is refused.
package claimtest

import (
	"fmt"
	"slices"

	"github.com/pfl-forge/pfl-forge"
)

// Met returns a claim for each of what was asked: met, certain, and with evidence that
// resolved in the change.
func Met(asked []string) []forge.Claim {
	var list []forge.Claim
	for i, text := range asked {
		list = append(list, forge.Claim{
			Number: i + 1, Text: text, Met: true, Confidence: 0.9, Note: "it is there",
			Evidence: []forge.Citation{{Kind: forge.CitationDiff, Ref: "main.go:1", Quote: "package main", Resolved: true}},
		})
	}
	return list
}

// spoilers change claims so that they do not show that everything is met. The list is never empty.
// Each breaks one rule of package verdict alone, so a caller that forgets this rule is found by
// its name.
var spoilers = map[string]func(list []forge.Claim) []forge.Claim{
	"not-met": func(list []forge.Claim) []forge.Claim {
		list[0].Met, list[0].Note, list[0].Evidence = false, "it is missing", nil
		return list
	},
	"unresolved": func(list []forge.Claim) []forge.Claim {
		list[0].Evidence[0].Resolved, list[0].Evidence[0].Reason = false, "the quote does not stand at main.go:1"
		return list
	},
	"not-looked-up": func(list []forge.Claim) []forge.Claim {
		list[0].Evidence[0].Resolved = false
		return list
	},
	"half-resolved": func(list []forge.Claim) []forge.Claim {
		list[0].Evidence = append(list[0].Evidence, forge.Citation{Kind: forge.CitationFile, Ref: "none.go:1", Reason: "none.go does not exist"})
		return list
	},
	"no-evidence": func(list []forge.Claim) []forge.Claim {
		list[0].Evidence = nil
		return list
	},
	"unsure":    func(list []forge.Claim) []forge.Claim { list[0].Confidence = 0.05; return list },
	"left-out":  func(list []forge.Claim) []forge.Claim { return list[1:] },
	"nothing":   func([]forge.Claim) []forge.Claim { return nil },
	"doubled":   func(list []forge.Claim) []forge.Claim { return append(list, list[0]) },
	"unchanged": unchanged,
	"added": func(list []forge.Claim) []forge.Claim {
		more := list[0]
		more.Number, more.Text = len(list)+1, "nobody asked for this"
		return append(list, more)
	},
	"renumbered": func(list []forge.Claim) []forge.Claim {
		for i := range list {
			list[i].Number++
		}
		return list
	},
	"of-another": func(list []forge.Claim) []forge.Claim { list[0].Text = "something else"; return list },
}

// unchanged marks all evidence as there before the change.
func unchanged(list []forge.Claim) []forge.Claim {
	for i := range list {
		list[i].Evidence[0].Unchanged = true
	}
	return list
}

// Ways lists the ways in which Lie can lie, sorted.
func Ways() []string {
	var out []string
	for name := range spoilers {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// Lie returns claims that say that all is met, and do not show it, in one of the Ways. Nothing may
// be asked for only in ways that do not look at the first claim; tests ask for two or more. An
// unknown way is a mistake in the test, and panics.
func Lie(asked []string, way string) []forge.Claim {
	spoil, ok := spoilers[way]
	if !ok {
		panic(fmt.Sprintf("no claims lie by %q", way))
	}
	return spoil(Met(asked))
}
