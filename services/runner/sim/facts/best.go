package facts

import "github.com/pfl-forge/pfl-forge"

// BestOf chooses the policy about two changes of a task, by the number of a world: in seven of ten
// there is none. It takes nothing from the world's chances, so that the other worlds are as they
// would be without it.
func BestOf(seed uint64) forge.BestOfTwo {
	switch seed % 10 {
	case 3:
		return forge.BestOfTwo{When: []string{"complex"}, By: forge.Stronger{Model: "opus"}}
	case 6:
		return forge.BestOfTwo{When: []string{"rejected"}}
	case 9:
		return forge.BestOfTwo{When: []string{"rejected", "complex"}, By: forge.Stronger{Effort: "max"}}
	}
	return forge.BestOfTwo{}
}
