package files

import (
	"maps"
	"net/url"
	"slices"
	"strconv"

	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/services/gateway/console/board"
)

// View is a page of the files of a change.
type View struct {
	document.Diff
	// Names are all files of the change, in their Order; Unplanned counts those
	// that the plan does not name.
	Names     []Name
	Unplanned int
	// More leads to the next page, and First to the first one; empty where there is none.
	More, First string
	// Former are the attempts with which it can be compared.
	Former []board.Tab
	// Off says that lines which are altered in white space alone are left out, and Space leads
	// to the change with them, or without; it is empty in a comparison, which is of every byte.
	Off   bool
	Space string
}

// Name is a file of a change, with the page that begins with its lines.
type Name struct {
	document.DiffFile
	Address string
	// ID is that of the file on each page that has a part of it.
	ID string
}

// fragment is where the addresses of pages of the change lead to.
const fragment = "#diff"

// Of makes a page of an answer with lines, and of one with the names of all
// files. Address is that of the page of the intent, ask has the parameters by
// which the answer was asked for, and steps are the attempts that there were.
func Of(d, names *document.Diff, address string, ask url.Values, steps []document.StepRecord) *View {
	v := &View{Diff: *d, Off: ask.Has("whitespace")}
	to := func(q url.Values) string { return address + "?" + q.Encode() + fragment }
	after := func(place string) string {
		q := maps.Clone(ask)
		if q.Set("after", place); place == "" {
			q.Del("after")
		}
		return to(q)
	}
	for i, f := range names.Files {
		if Unplanned(f) {
			v.Unplanned++
		}
		v.Names = append(v.Names, Name{f, after(document.DiffAt(i)), "f" + strconv.Itoa(i)})
	}
	slices.SortStableFunc(v.Names, func(a, b Name) int { return Order(a.DiffFile, b.DiffFile) })
	slices.SortStableFunc(v.Files, Order)
	if d.Next != "" {
		v.More = after(d.Next)
	}
	if ask.Has("after") {
		v.First = after("")
	}
	own := func() url.Values {
		return url.Values{"task": {string(d.Task)}, "step": {string(d.Step)}, "attempt": {strconv.Itoa(d.Attempt)}}
	}
	if d.Since == nil {
		q := own()
		if !v.Off {
			q.Set("whitespace", document.WhitespaceOff)
		}
		v.Space = to(q)
	}
	add := func(since int, name string) {
		q := own()
		if since > 0 {
			q.Set("since", strconv.Itoa(since))
		}
		here := d.Since == nil && since == 0 || d.Since != nil && d.Since.Attempt == since
		v.Former = append(v.Former, board.Tab{Name: name, Address: to(q), Here: here})
	}
	for i := range steps {
		s := &steps[i]
		if s.Task == d.Task && s.Step == d.Step && s.Attempt < d.Attempt {
			if len(v.Former) == 0 {
				add(0, "the whole change")
			}
			add(s.Attempt, "since attempt "+strconv.Itoa(s.Attempt))
		}
	}
	return v
}
