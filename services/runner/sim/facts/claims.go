package facts

import (
	"slices"

	"github.com/pfl-forge/pfl-forge"
)

// Claims answers requirements or criteria as a reviewer or judge does: mostly met, with
// evidence that resolved. Now and then a claim is not met, its evidence did not resolve
// or is missing, its confidence is low, or it is left out, given twice, or added.
func Claims(chance func(n int) bool, asked []string) []forge.Claim {
	var list []forge.Claim
	for i, text := range asked {
		c := forge.Claim{Number: i + 1, Text: text, Met: !chance(8), Confidence: 0.9}
		c.Evidence = []forge.Citation{{Kind: forge.CitationDiff, Ref: "a.go:1", Quote: "it is there", Resolved: true}}
		switch {
		case chance(15):
			c.Evidence[0].Resolved, c.Evidence[0].Reason = false, "it is not there"
		case chance(30):
			c.Evidence = nil
		case chance(29):
			c.Confidence = 0.3
		}
		list = append(list, c)
	}
	switch {
	case len(list) == 0: // commands decide everything
	case chance(25):
		list = list[1:]
	case chance(40):
		list = append(list, list[0])
	case chance(39):
		list = append(list, forge.Claim{Number: len(asked) + 1, Text: "more", Met: true, Confidence: 1, Evidence: list[0].Evidence})
	}
	return list
}

// Shown reports whether claims show that all that was asked is met. It says
// what must hold in its own words, not in those of the rules.
func Shown(asked []string, claims []forge.Claim) bool {
	if len(claims) != len(asked) {
		return false
	}
	for i := range claims {
		c := &claims[i]
		unresolved := slices.ContainsFunc(c.Evidence, func(e forge.Citation) bool { return !e.Resolved })
		if c.Text != asked[i] || !c.Met || c.Confidence < 0.7 || len(c.Evidence) == 0 || unresolved {
			return false
		}
	}
	return true
}
