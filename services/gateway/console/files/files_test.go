package files

import (
	"net/url"
	"slices"
	"testing"

	"github.com/pfl-forge/pfl-forge/document"
)

// TestOrderOfFiles: what the plan does not name comes first and is never folded,
// whatever its name and size; what programs make comes last, and is folded.
func TestOrderOfFiles(t *testing.T) {
	no, yes := false, true
	list := []document.DiffFile{
		{Path: "api.pb.go", Planned: &yes},
		{Path: "b.go", Planned: &yes},
		{Path: "large.go", Planned: &yes, Added: 300, Deleted: 101},
		{Path: "web/node_modules/x.js", Planned: &no, Added: 5000},
		{Path: "go.sum", Planned: &yes},
		{Path: "recipe.go"},
	}
	slices.SortStableFunc(list, Order)
	got := ""
	for _, f := range list {
		got += f.Path
		if Folded(f) {
			got += "(folded)"
		}
		got += " "
	}
	if want := "web/node_modules/x.js b.go large.go(folded) recipe.go api.pb.go(folded) go.sum(folded) "; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

// TestPageOfFiles: each name leads to its lines by the same attempt, the switch of
// white space to the same change, and former attempts to comparisons of all bytes.
func TestPageOfFiles(t *testing.T) {
	no := false
	d := document.Diff{Task: "a-001", Step: "implement", Attempt: 3, Next: "1.0", Files: []document.DiffFile{{Path: "a.go"}}}
	names := document.Diff{Files: []document.DiffFile{{Path: "a.go"}, {Path: "b.go", Planned: &no}}}
	steps := []document.StepRecord{
		{Task: "a-001", Step: "implement", Attempt: 1},
		{Task: "b-001", Step: "implement", Attempt: 2},
		{Task: "a-001", Step: "review", Attempt: 2},
		{Task: "a-001", Step: "implement", Attempt: 3},
	}
	ask := url.Values{"task": {"a-001"}, "step": {"implement"}, "attempt": {"3"}, "after": {"0.7"}}
	v := Of(&d, &names, "/i", ask, steps)
	const own = "/i?attempt=3&step=implement&task=a-001"
	for about, one := range map[string][2]string{
		"the file that comes first": {v.Names[0].Path + " " + v.Names[0].Address, "b.go /i?after=1.0&attempt=3&step=implement&task=a-001#diff"},
		"the next page":             {v.More, "/i?after=1.0&attempt=3&step=implement&task=a-001#diff"},
		"the first page":            {v.First, own + "#diff"},
		"without white space":       {v.Space, own + "&whitespace=off#diff"},
		"the whole":                 {v.Former[0].Address, own + "#diff"},
		"since the first":           {v.Former[1].Address, "/i?attempt=3&since=1&step=implement&task=a-001#diff"},
	} {
		if one[0] != one[1] {
			t.Errorf("%s: %s, want %s", about, one[0], one[1])
		}
	}
	if v.Unplanned != 1 || len(v.Former) != 2 || v.Off || !v.Former[0].Here {
		t.Errorf("%+v", v)
	}
	ask.Set("whitespace", "off")
	ask.Del("after")
	if v := Of(&d, &names, "/i", ask, nil); !v.Off || v.Space != own+"#diff" || v.First != "" ||
		v.More != "/i?after=1.0&attempt=3&step=implement&task=a-001&whitespace=off#diff" {
		t.Errorf("%+v", v)
	}
	d.Since = &document.DiffSince{Attempt: 1}
	ask.Del("whitespace")
	if v := Of(&d, &names, "/i", ask, steps); v.Space != "" || v.Former[0].Here || !v.Former[1].Here {
		t.Errorf("%+v", v)
	}
}
