package reviews

import (
	"fmt"
	"slices"
)

// Discuss adds a note to the discussion that begins with another one, or with
// itself, as GitLab has discussions.
func Discuss(list []Object, first int64, note Object) []Object {
	name := fmt.Sprint("d", first)
	if at := slices.IndexFunc(list, func(d Object) bool { return d["id"] == name }); at >= 0 {
		list[at]["notes"] = append(list[at]["notes"].([]Object), note)
		return list
	}
	return append(list, Object{"id": name, "individual_note": note["resolvable"] == false, "notes": []Object{note}})
}

// Earlier compares discussions by their first notes.
func Earlier(a, b Object) int {
	first := func(d Object) int64 { return d["notes"].([]Object)[0]["id"].(int64) }
	return int(first(a) - first(b))
}

// Notes returns the notes of all discussions, the oldest first.
func Notes(discussions []Object) (out []Object) {
	for _, d := range discussions {
		out = append(out, d["notes"].([]Object)...)
	}
	slices.SortStableFunc(out, func(a, b Object) int { return int(a["id"].(int64) - b["id"].(int64)) })
	return out
}
