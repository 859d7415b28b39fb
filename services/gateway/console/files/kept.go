package files

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge/document"
)

// Kept tells how a change keeps to the files that the plan of its task names.
type Kept struct {
	// Untouched are files that the plan names and the change leaves as they are.
	Untouched []string
	// Beyond are files that the change touches and the plan does not name.
	Beyond []string
}

// KeptTo compares the plan of a task, by its place among those of a work, with
// its change. It is empty where there is no change yet, where the plan names no
// files, and where either list is cut: then what is missing from it says nothing.
func KeptTo(w *document.Work, task int) (k Kept) {
	for _, c := range w.Truncated {
		for _, list := range []string{"changed", "files"} {
			if strings.HasPrefix(c.Field, fmt.Sprintf("work[%d].%s", task, list)) {
				return k
			}
		}
	}
	t := &w.PlanTasks[task]
	return kept(t.Files, t.Changed)
}

// Untouched returns the files that a plan names and the change that is shown
// leaves as they are; none where that is not known.
func (v *View) Untouched(planned []string) []string {
	if v.Since != nil || v.LeftOut > 0 || len(v.Names) != v.FileCount {
		return nil
	}
	var changed []string
	for i := range v.Names {
		changed = append(changed, v.Names[i].Path, v.Names[i].OldPath)
	}
	return kept(planned, changed).Untouched
}

// kept compares two lists. A folder that the plan names is touched with each file below it.
func kept(planned, changed []string) (k Kept) {
	if len(planned) == 0 || len(changed) == 0 {
		return k
	}
	for _, name := range planned {
		below := strings.TrimSuffix(name, "/") + "/"
		if !slices.ContainsFunc(changed, func(c string) bool { return c == name || strings.HasPrefix(c, below) }) {
			k.Untouched = append(k.Untouched, name)
		}
	}
	for _, name := range changed {
		if !slices.Contains(planned, name) {
			k.Beyond = append(k.Beyond, name)
		}
	}
	return k
}
