package files

import (
	"net/url"
	"testing"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
)

// TestPlacesOfEvidence: evidence leads to the line that it cites where exactly
// that line is on the page, else to its file, on the page that begins with it;
// and of a file that the change does not touch it leads nowhere, and says so.
func TestPlacesOfEvidence(t *testing.T) {
	page := func(after string) *View {
		d := document.Diff{Head: "h1", FileCount: 4, Files: []document.DiffFile{
			{Path: "a.go", Hunks: []document.DiffHunk{{Lines: []document.DiffLine{
				{Op: " ", Old: 4, New: 4}, {Op: "-", Old: 5}, {Op: "+", New: 5}, {Op: "+", New: 6}, {Op: " ", Old: 6, New: 7},
			}}}},
			{Path: "odd:7", Hunks: []document.DiffHunk{{Lines: []document.DiffLine{{Op: "+", New: 1}}}}},
		}}
		names := document.Diff{Files: []document.DiffFile{{Path: "a.go"}, {Path: "odd:7"}, {Path: "new.go", OldPath: "old.go"}, {Path: "z.go"}}}
		ask := url.Values{"task": {"a-001"}}
		if after != "" {
			d.Files = d.Files[1:]
			d.Files[0].From = 2000
			ask.Set("after", after)
		}
		return Of(&d, &names, "/i", ask, nil)
	}
	one, later := page(""), page("1.2000")
	cut, former := page(""), page("")
	cut.FileCount, former.Head = 5, "h0"
	file := func(ref string) document.Citation { return document.Citation{Kind: forge.CitationFile, Ref: ref} }
	diff := func(ref, quote string) document.Citation {
		return document.Citation{Kind: forge.CitationDiff, Ref: ref, Quote: quote}
	}
	outside := Place{Outside: true}
	for about, c := range map[string]struct {
		on   *View
		cite document.Citation
		want Place
	}{
		"a line":                       {one, file("a.go:5"), Place{"#f0n5", true, false}},
		"a range that begins before":   {one, file("a.go:2-4"), Place{"#f0n4", true, false}},
		"a quote that begins before":   {one, document.Citation{Kind: forge.CitationFile, Ref: "a.go:L3", Quote: "x\ny\n"}, Place{"#f0n4", true, false}},
		"a line that is not shown":     {one, file("a.go:90"), Place{"#f0", false, false}},
		"a line that is gone":          {one, diff("a.go:5", "-x"), Place{"#f0o5", true, false}},
		"a line that is new":           {one, diff("a.go:5", "-x\n+y"), Place{"#f0n5", true, false}},
		"a file without lines":         {one, diff("a.go", ""), Place{"#f0", true, false}},
		"a path with a colon":          {one, file("odd:7:1"), Place{"#f1n1", true, false}},
		"a file of another page":       {one, file("z.go:1"), Place{"/i?after=3.0&task=a-001#f3", false, false}},
		"its former name":              {one, file("old.go:1"), Place{"/i?after=2.0&task=a-001#f2", false, false}},
		"before what the page has":     {later, file("odd:7:900"), Place{"/i?after=1.0&task=a-001#f1", false, false}},
		"another commit":               {former, file("a.go:5"), Place{"#f0", false, false}},
		"not in the change":            {one, file("other.go:5"), outside},
		"not among the names":          {cut, file("other.go:5"), Place{}},
		"not in another commit":        {former, file("other.go:5"), Place{}},
		"a path that is not there":     {one, document.Citation{Kind: forge.CitationAbsence, Ref: "gone.go"}, Place{}},
		"the run of a command":         {one, document.Citation{Kind: forge.CitationCommand, Ref: "a.go:5"}, Place{}},
		"no change":                    {nil, file("a.go:5"), Place{}},
		"a name that would be a link":  {one, file("javascript:5"), outside},
		"a number that is none of int": {one, file("a.go:99999999999999999999"), outside},
	} {
		if got := c.on.Place("h1", c.cite); got != c.want {
			t.Errorf("%s: %+v, want %+v", about, got, c.want)
		}
	}
	if got := one.Anchor(document.DiffFile{Path: "z.go"}) + one.Anchor(document.DiffFile{Path: "none"}); got != "f3" {
		t.Errorf("the ids of files are %s", got)
	}
}
