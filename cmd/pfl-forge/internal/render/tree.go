package render

import "github.com/pfl-forge/pfl-forge"

// Tree returns the intents with child intents after their parents, and the
// depth of each, 0 for one without a parent in the list. Siblings stay in the
// order that they had.
func Tree(all []forge.Summary) ([]forge.Summary, []int) {
	known := map[forge.IntentID]bool{}
	parts := map[forge.IntentID][]int{}
	for i := range all {
		known[all[i].Key.Intent] = true
	}
	for i := range all {
		parts[all[i].Parent] = append(parts[all[i].Parent], i)
	}
	list, depths := make([]forge.Summary, 0, len(all)), make([]int, 0, len(all))
	listed := map[int]bool{}
	var add func(i, depth int)
	add = func(i, depth int) {
		if listed[i] {
			return
		}
		listed[i] = true
		list, depths = append(list, all[i]), append(depths, depth)
		for _, k := range parts[all[i].Key.Intent] {
			add(k, depth+1)
		}
	}
	for i := range all {
		if !known[all[i].Parent] {
			add(i, 0)
		}
	}
	for i := range all {
		add(i, 0) // none, unless parents go round in a circle
	}
	return list, depths
}
