package console

import (
	"html"
	"net/url"
	"strings"
	"testing"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/services/gateway/console/files"
	"github.com/pfl-forge/pfl-forge/verdict"
)

// TestOddProofsAreSaid: what a hurried reviewer takes for a proof of the
// change, and is none, says so in the verdict line.
func TestOddProofsAreSaid(t *testing.T) {
	runs := func(c document.Check) document.Verified { return document.Verified{Runs: []document.Check{c}} }
	reviews := func(was bool, verdicts ...forge.Verdict) (list []document.Review) {
		for _, v := range verdicts {
			list = append(list, document.Review{Task: "a-001", Head: "h1", Verdict: v, Claims: []document.Claim{
				{Number: 1, Met: true, Evidence: []document.Citation{{Ref: "a:1", Resolved: true, Unchanged: was}}},
			}})
		}
		return list
	}
	const altered, old, other = "passes the checks that it has altered itself", "1 of them by nothing in the change", "another review of this commit has"
	cases := map[string]struct {
		verified document.Verified
		reviews  []document.Review
	}{
		"without the fix its tests fail": {verified: runs(document.Check{Name: verdict.RegressionProof, Passed: true, ExitCode: 1})},
		"they pass also without it":      {verified: runs(document.Check{Name: verdict.RegressionProof, Output: "they pass also without it"})},
		"coverage 88%":                   {verified: runs(document.Check{Command: "make test", Passed: true, Output: "coverage 88%"})},
		altered:                          {verified: document.Verified{Guarded: []string{"go.mod", verdict.FailsAsItWas("check.sh", "./check.sh")}}},
		old:                              {reviews: reviews(true, forge.VerdictApproved)},
		other:                            {reviews: reviews(false, forge.VerdictApproved, forge.VerdictRejected)},
		"of 1 requirement met":           {reviews: reviews(false, forge.VerdictApproved, forge.VerdictApproved)},
	}
	yes, answer := true, "with words"
	for says, one := range cases {
		d := document.Detail{}
		one.verified.Task, one.verified.Head, one.verified.Passed = "a-001", "h1", &yes
		d.Verified, d.Reviews = []document.Verified{one.verified}, one.reviews
		d.PlanTasks = []document.Task{{ID: "a-001", Product: document.Product{Head: "h1"}}}
		d.Questions = []document.Clarification{{Question: "How?", Answer: &answer}}
		page := changePage{pending: &pending{Detail: d}}
		if err := page.choose(""); err != nil {
			t.Fatal(err)
		}
		page.look()
		text := html.UnescapeString(shown(t, "change", &page))
		for _, want := range []string{says, answer} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %q is not in %s", says, want, text)
			}
		}
		for _, not := range []string{altered, old, other} {
			if says != not && strings.Contains(text, not) {
				t.Errorf("%s: it says %q", says, not)
			}
		}
	}
}

// TestMergeElsewhereIsSaid: the page names the parent that the commands ran on
// and the one that the change was merged on, and says when these are two.
func TestMergeElsewhereIsSaid(t *testing.T) {
	yes := true
	for parent, moved := range map[string]bool{"aaaaaaaaaaaaaaaa": false, "bbbbbbbbbbbbbbbb": true} {
		d := document.Detail{}
		d.Verified = []document.Verified{
			{Task: "a-001", Step: forge.StepRebase, Base: "aaaaaaaaaaaaaaaa", Head: "h1", PatchID: "p", Passed: &yes},
			{Task: "a-001", Step: forge.StepMerge, Base: parent, Head: "cccc", PatchID: "p"},
		}
		d.PlanTasks = []document.Task{{ID: "a-001", Product: document.Product{Head: "cccc", PatchID: "p", Commit: "cccc"}}}
		page := changePage{pending: &pending{Detail: d}}
		if err := page.choose(""); err != nil {
			t.Fatal(err)
		}
		page.look()
		text := shown(t, "change", &page)
		for _, want := range []string{
			`verified</b></a> on parent <code title="aaaaaaaaaaaaaaaa">`, `merged</b> as <code title="cccc">cccc</code> on parent <code title="` + parent + `">`,
		} {
			if !strings.Contains(text, want) {
				t.Errorf("%q is not in %s", want, text)
			}
		}
		if says := strings.Contains(text, "It was merged on another parent than it was verified on here"); says != moved {
			t.Errorf("on %s: that it moved is said: %t", parent, says)
		}
	}
}

// TestSamePlanAgain: a plan that comes back as it was when changes of it were
// asked for is said to be that one; another plan is not.
func TestSamePlanAgain(t *testing.T) {
	for asked, same := range map[string]bool{"sha256:one": true, "sha256:other": false, "": false} {
		d := document.Detail{}
		d.Plan = "sha256:one"
		d.Decisions = []document.Decided{{What: "request_changes", By: "Mei", Plan: asked, Reason: "no token for it"}}
		page := changePage{pending: &pending{Detail: d, Objection: "wait"}}
		if err := page.choose(""); err != nil {
			t.Fatal(err)
		}
		if text := shown(t, "change", &page); strings.Contains(text, "and it came back the same: “<bdi>no token for it") != same {
			t.Errorf("%q: %s", asked, text)
		}
	}
}

// TestEvidenceLeadsToItsLines: what a reviewer cites is a link to the line of
// the change, or to its file; the ids that the links lead to are on the page.
func TestEvidenceLeadsToItsLines(t *testing.T) {
	d := document.Detail{}
	cite := func(ref string) document.Citation {
		return document.Citation{Kind: forge.CitationFile, Ref: ref, Resolved: true}
	}
	d.Reviews = []document.Review{{Task: "a-001", Head: "h1", Verdict: forge.VerdictApproved, Claims: []document.Claim{
		{Number: 1, Met: true, Evidence: []document.Citation{cite("a.go:7"), cite("a.go:90"), cite("other.go:1")}},
	}}}
	d.PlanTasks = []document.Task{{ID: "a-001", Product: document.Product{Head: "h1"}}}
	change := document.Diff{Head: "h1", FileCount: 1, Files: []document.DiffFile{
		{Path: "a.go", Hunks: []document.DiffHunk{{Lines: []document.DiffLine{{Op: "-", Old: 7}, {Op: "+", New: 7, Text: "x"}}}}},
	}}
	page := changePage{pending: &pending{Detail: d}, Change: files.Of(&change, &change, "/i", url.Values{}, nil)}
	if err := page.choose(""); err != nil {
		t.Fatal(err)
	}
	page.look()
	text := shown(t, "change", &page)
	for _, want := range []string{
		`<a href="#f0n7"><code><bdi>a.go:7</bdi></code></a>`, `id="f0n7"`, `id="f0o7"`,
		`<a href="#f0"><code><bdi>a.go:90</bdi></code></a> <span class="dim">(leads to its file)`, `<details class="file" id="f0"`,
		`<code><bdi>other.go:1</bdi></code> <span class="tag warn">not a file of this change`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in %s", want, text)
		}
	}
}

// TestAskedChecksAreShown: what a reviewer had run stands with what was run on
// the change, whether or not anything else was.
func TestAskedChecksAreShown(t *testing.T) {
	d := document.Detail{}
	d.Reviews = []document.Review{{Task: "a-001", Head: "h1", Verdict: forge.VerdictRejected, Checks: []document.Check{
		{ID: "a1", Name: "generated", Command: "go generate ./...", Passed: true},
		{ID: "a2", Name: "race", Command: "go test -race", ExitCode: 1, Output: "DATA <RACE>"},
		{ID: "a3", Name: "none", ExitCode: -1, Output: "it did not run on this commit"},
	}}}
	d.PlanTasks = []document.Task{{ID: "a-001", Product: document.Product{Head: "h1"}}}
	page := changePage{pending: &pending{Detail: d}}
	if err := page.choose(""); err != nil {
		t.Fatal(err)
	}
	page.look()
	text := shown(t, "change", &page)
	_, text, found := strings.Cut(text, "What was run on it")
	if !found {
		t.Fatal("nothing was run")
	}
	text, _, _ = strings.Cut(text, "</section>")
	for _, want := range []string{
		`<bdi>generated</bdi>: <code><bdi>go generate ./...</bdi></code> <b class="yes">`, "of a check that passed is not kept",
		`<bdi>race</bdi>: <code><bdi>go test -race</bdi></code> <b class="no">`, "DATA &lt;RACE&gt;", "exit 1", "it did not run on this commit",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in %s", want, text)
		}
	}
	if n := strings.Count(text, "asked for by the reviewer"); n != 3 {
		t.Errorf("%d are marked as asked for: %s", n, text)
	}
}

// TestFilesBesideThePlanAreMarked: where files are listed, those that the plan
// names and the change leaves alone are marked, and those that it touches besides.
func TestFilesBesideThePlanAreMarked(t *testing.T) {
	d := document.Detail{}
	d.PlanTasks = []document.Task{
		{ID: "a-001", Files: []string{"a.go", "server.go"}, Product: document.Product{Head: "h1", Changed: []string{"a.go", "extra.go"}}},
		{ID: "a-002", Files: []string{"later.go"}},
	}
	change := document.Diff{Head: "h1", FileCount: 2, Files: []document.DiffFile{{Path: "a.go"}, {Path: "extra.go"}}}
	page := changePage{pending: &pending{Detail: d}, Change: files.Of(&change, &change, "/i", url.Values{}, nil)}
	if err := page.choose(""); err != nil {
		t.Fatal(err)
	}
	page.look()
	text := shown(t, "change", &page)
	for _, want := range []string{
		`<code><bdi>a.go</bdi></code> <code><bdi>server.go</bdi></code> <span class="tag warn">not changed</span>`, `<code><bdi>later.go</bdi></code> </p>`,
		`Changed, and not named by this plan: <code><bdi>extra.go</bdi></code>`,
		`The plan names 1 file that this change does not touch: <code><bdi>server.go</bdi></code>`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in %s", want, text)
		}
	}
	page.From = "inbox" // which approves no change, and has a bound
	if text := shown(t, "inbox", &inboxPage{Items: []*pending{page.pending}}); strings.Contains(text, "not changed") || strings.Contains(text, "extra.go") {
		t.Errorf("the inbox has %s", text)
	}
}

// TestRefusedPatchIsPast: the page of a change that failed after a person had
// asked for changes says that what it knows is of the refused patch, wherever
// it would look like a verdict that counts.
func TestRefusedPatchIsPast(t *testing.T) {
	yes := true
	for refused, n := range map[bool]int{true: 5, false: 0} {
		d := document.Detail{}
		d.Verified = []document.Verified{{Task: "a-001", Head: "h1", PatchID: "p", Passed: &yes, Runs: []document.Check{
			{Name: verdict.RegressionProof, Passed: true}, {Command: "go test ./...", Passed: true},
		}}}
		d.Reviews = []document.Review{{Task: "a-001", Head: "h1", Verdict: forge.VerdictApproved}}
		if refused {
			d.Adjustments = []document.Adjustment{{Rule: "changes-requested", Task: "a-001", Detail: "bob: not <so>", At: time.Now()}}
		}
		d.PlanTasks = []document.Task{{ID: "a-001", Status: forge.TaskFailed, Product: document.Product{Head: "h1", PatchID: "p"}}}
		page := changePage{pending: &pending{Detail: d}}
		if err := page.choose(""); err != nil {
			t.Fatal(err)
		}
		page.look()
		text := shown(t, "change", &page)
		if strings.Count(text, `<span class="tag warn">refused patch</span>`) != n || strings.Contains(text, "of an earlier patch") != refused ||
			strings.Contains(text, "bob: not &lt;so&gt;") != refused || strings.Contains(text, `class="verdict past"`) != refused {
			t.Errorf("refused %t: %s", refused, text)
		}
	}
}
