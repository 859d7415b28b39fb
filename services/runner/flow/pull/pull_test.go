package pull_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/pull"
)

// green returns a look at the pull request of the change, with nothing in its way.
func green() *forge.PullRequest {
	return &forge.PullRequest{
		Number: 7, Branch: "forge/a-001", Base: "main", Head: "h1", State: forge.PullOpen, Seen: time.Unix(100, 0),
		Checks: []forge.PullCheck{{Name: "build", State: forge.PullCheckPassed}, {Name: "slow", State: forge.PullCheckPassed}},
	}
}

var ours = pull.Ours{
	Branch: "forge/a-001", Base: "main", Head: "h1", Patch: "p1", Number: 7, Former: []pull.Head{{Commit: "h0", Patch: "p0"}, {Commit: "h00", Patch: "p1"}},
}

// approvals returns approvals of commits, by one who may.
func approvals(commits ...string) (list []forge.PullReview) {
	for _, c := range commits {
		list = append(list, forge.PullReview{Person: "grace", Account: "grace1" + c, May: true, Verdict: forge.PullApproved, Commit: c})
	}
	return list
}

// TestWishesAreHeardOnce: what a change was made again for stays at the forge until
// its author takes it back. It keeps the change from being merged, and does not
// have it made again; other words, or the same of a new commit, are another wish.
func TestWishesAreHeardOnce(t *testing.T) {
	o, seen := ours, green()
	seen.Reviews = []forge.PullReview{{Person: "ada", Account: "ada17", May: true, Verdict: forge.PullChangesRequested, Commit: "h1", Text: "shorter"}}
	o.TakeUp(seen)
	o.Push(pull.Head{Commit: "h2", Patch: "p2"})
	seen.Head = "h2"
	if got := o.Status(&forge.PullPolicy{}, seen); got != pull.Blocked || len(o.Wishes(seen)) > 0 {
		t.Errorf("once heard: %s", got)
	}
	if got := o.Words(&forge.PullPolicy{}, seen); !strings.Contains(got, "ada asked for changes") {
		t.Errorf("it %s", got)
	}
	for name, change := range map[string]func(*forge.PullReview){
		"of the new commit": func(r *forge.PullReview) { r.Commit = "h2" },
		"in other words":    func(r *forge.PullReview) { r.Text = "much shorter" },
		"by another one":    func(r *forge.PullReview) { r.Account = "grace1" },
	} {
		seen := *seen
		seen.Reviews = slices.Clone(seen.Reviews)
		change(&seen.Reviews[0])
		if got := o.Status(&forge.PullPolicy{}, &seen); got != pull.Unwanted {
			t.Errorf("%s: %s", name, got)
		}
	}
	seen.Reviews[0].Verdict, seen.Reviews[0].Commit = forge.PullApproved, "h2"
	if got := o.Status(&forge.PullPolicy{}, seen); got != pull.Ready {
		t.Errorf("taken back: %s", got)
	}
}

// TestStanding changes one thing of a pull request that is ready, and says what follows.
func TestStanding(t *testing.T) {
	asks := forge.PullReview{Person: "ada", Account: "ada17", May: true, Verdict: forge.PullChangesRequested, Commit: "h0"}
	for name, test := range map[string]struct {
		change func(*forge.PullRequest)
		want   pull.Status
	}{
		"nothing":                  {func(*forge.PullRequest) {}, pull.Ready},
		"another branch":           {func(p *forge.PullRequest) { p.Branch = "forge/b-001" }, pull.Edited},
		"another base":             {func(p *forge.PullRequest) { p.Base = "release" }, pull.Elsewhere},
		"merged elsewhere":         {func(p *forge.PullRequest) { p.Base, p.State = "release", forge.PullMerged }, pull.Elsewhere},
		"merged, branch deleted":   {func(p *forge.PullRequest) { p.Branch, p.State = "", forge.PullMerged }, pull.Merged},
		"no checks yet":            {func(p *forge.PullRequest) { p.Checks = nil }, pull.Pending},
		"another number":           {func(p *forge.PullRequest) { p.Number, p.State = 8, forge.PullMerged }, pull.Foreign},
		"merged":                   {func(p *forge.PullRequest) { p.State, p.Checks[0].State = forge.PullMerged, forge.PullCheckFailed }, pull.Merged},
		"merged with another head": {func(p *forge.PullRequest) { p.State, p.Head = forge.PullMerged, "h9" }, pull.Merged},
		"edited":                   {func(p *forge.PullRequest) { p.Head = "h9" }, pull.Edited},
		"edited and closed":        {func(p *forge.PullRequest) { p.Head, p.State = "h9", forge.PullClosed }, pull.Edited},
		"closed":                   {func(p *forge.PullRequest) { p.State = forge.PullClosed }, pull.Closed},
		"changes requested":        {func(p *forge.PullRequest) { p.Reviews = []forge.PullReview{asks} }, pull.Unwanted},
		"by one who may not": {func(p *forge.PullRequest) {
			stranger := asks
			stranger.May = false
			p.Reviews = []forge.PullReview{stranger}
		}, pull.Ready},
		"by one whom the operator does not know": {func(p *forge.PullRequest) {
			stranger := asks
			stranger.Person = ""
			p.Reviews = []forge.PullReview{stranger}
		}, pull.Ready},
		"failing and pending": {func(p *forge.PullRequest) {
			p.Checks[0].State, p.Checks[1].State = forge.PullCheckPending, forge.PullCheckFailed
		}, pull.Failing},
		"pending":                       {func(p *forge.PullRequest) { p.Checks[1].State = forge.PullCheckPending }, pull.Pending},
		"in a state that is newer":      {func(p *forge.PullRequest) { p.Checks[1].State = "parked" }, pull.Pending},
		"a head that was pushed before": {func(p *forge.PullRequest) { p.Head = "h0" }, pull.Outdated},
		"closed with such a head":       {func(p *forge.PullRequest) { p.Head, p.State = "h0", forge.PullClosed }, pull.Closed},
		"behind":                        {func(p *forge.PullRequest) { p.Behind = true }, pull.Behind},
		"behind and blocked":            {func(p *forge.PullRequest) { p.Behind, p.Blocked = true, "an approval is missing" }, pull.Blocked},
		"approved":                      {func(p *forge.PullRequest) { p.Reviews = approvals("h1") }, pull.Ready},
		"the same patch was approved":   {func(p *forge.PullRequest) { p.Reviews = approvals("h00") }, pull.Ready},
		"another patch was approved":    {func(p *forge.PullRequest) { p.Reviews = approvals("h0") }, pull.Blocked},
		"both were":                     {func(p *forge.PullRequest) { p.Reviews = approvals("h0", "h1") }, pull.Blocked},
		"another was, by one who may not": {func(p *forge.PullRequest) {
			p.Reviews = approvals("h0", "h1")
			p.Reviews[0].May = false
		}, pull.Ready},
		"another was, by one whom the operator does not know": {func(p *forge.PullRequest) {
			p.Reviews = approvals("h0", "h1")
			p.Reviews[0].Person = ""
		}, pull.Ready},
		"another one's commit was": {func(p *forge.PullRequest) { p.Reviews = approvals("h9") }, pull.Blocked},
		"blocked":                  {func(p *forge.PullRequest) { p.Blocked = "an approval is missing" }, pull.Blocked},
	} {
		seen := green()
		test.change(seen)
		if got := ours.Status(&forge.PullPolicy{}, seen); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// TestApprovalsOfTwoPatches: a forge that wants two approvals counts one of
// each patch. A person gives it again.
func TestApprovalsOfTwoPatches(t *testing.T) {
	seen := green()
	seen.Reviews = approvals("h0", "h1")
	if got := ours.Words(&forge.PullPolicy{}, seen); !strings.Contains(got, "what was approved is another change") {
		t.Errorf("it %s", got)
	}
	seen.Reviews[0].Commit = "h1"
	if got := ours.Status(&forge.PullPolicy{}, seen); got != pull.Ready {
		t.Errorf("given again: %s", got)
	}
}

// TestMergedAtAFormerHead: what a person merges while the next commit is on its
// way is compared with what was verified of that.
func TestMergedAtAFormerHead(t *testing.T) {
	o := pull.Ours{}
	first, second := pull.Head{Commit: "h1", Patch: "p1", Parent: "m1", Tree: "t1"}, pull.Head{Commit: "h2", Patch: "p1", Parent: "m2", Tree: "t2"}
	o.Push(first)
	o.Push(second)
	for head, want := range map[string]pull.Head{"h1": first, "h2": second, "h9": second} {
		if got := o.Merged(&forge.PullRequest{Head: head}); got != want {
			t.Errorf("merged at %s: %+v, want %+v", head, got, want)
		}
	}
}

// TestBeforeTheNumber: what was not answered yet is known by its branches alone.
func TestBeforeTheNumber(t *testing.T) {
	fresh := ours
	fresh.Number = 0
	for name, change := range map[string]func(*forge.PullRequest){
		"another branch": func(p *forge.PullRequest) { p.Branch = "forge/b-001" },
		"another base":   func(p *forge.PullRequest) { p.Base = "release" },
	} {
		seen := green()
		change(seen)
		if got := fresh.Status(&forge.PullPolicy{}, seen); got != pull.Foreign {
			t.Errorf("%s: %s", name, got)
		}
	}
	if got := fresh.Status(&forge.PullPolicy{}, green()); got != pull.Ready {
		t.Errorf("ours is %s", got)
	}
}

// TestNamedChecks counts only the checks that the project names: one that is
// not there has not ended, and others decide nothing.
func TestNamedChecks(t *testing.T) {
	seen := green()
	seen.Checks[1].State = forge.PullCheckFailed
	for want, names := range map[pull.Status][]string{
		pull.Ready: {"build"}, pull.Failing: {"build", "slow"}, pull.Pending: {"build", "deploy"},
	} {
		if got := ours.Status(&forge.PullPolicy{Checks: names}, seen); got != want {
			t.Errorf("%s: %s, want %s", names, got, want)
		}
	}
	failing := ours.Failed(&forge.PullPolicy{}, seen)
	if !slices.ContainsFunc(failing, func(c forge.PullCheck) bool { return c.Name == "slow" }) || len(failing) != 1 {
		t.Errorf("failing are %+v", failing)
	}
}

// TestNews takes what a look saw, and not how often or when.
func TestNews(t *testing.T) {
	known := green()
	again, late, newer := green(), green(), green()
	again.Seen = again.Seen.Add(time.Minute)
	late.Seen, late.State = late.Seen.Add(-time.Second), forge.PullClosed
	newer.Reviews = []forge.PullReview{{Account: "ada17", Verdict: forge.PullApproved}}
	for name, test := range map[string]struct {
		seen *forge.PullRequest
		want bool
	}{"the same": {again, false}, "an older one": {late, false}, "another review": {newer, true}} {
		if got := pull.IsNews(known, test.seen); got != test.want {
			t.Errorf("%s is news: %t", name, got)
		}
	}
	if !pull.IsNews(nil, known) {
		t.Error("the first look is no news")
	}
}

// TestRemarksAreHeardOnce: of a review whose remarks are named nothing is new when one of them
// is resolved, its line moves, or the forge takes the review along to another commit. Another
// remark, or another word of one, is another wish. Each is answered once the change is another.
func TestRemarksAreHeardOnce(t *testing.T) {
	o, seen := ours, green()
	whole, first, second := forge.PullRemark{Digest: "w"}, forge.PullRemark{Thread: 5, Digest: "a"}, forge.PullRemark{Thread: 6, Digest: "b"}
	seen.Reviews = []forge.PullReview{{
		Person: "ada", Account: "ada17", May: true, Verdict: forge.PullChangesRequested, Commit: "h1", Text: "w a b",
		Remarks: []forge.PullRemark{whole, first, second},
	}}
	o.TakeUp(seen)
	if got := o.Answers(); len(got) != 2 || got[0] != (forge.PullRemark{Thread: 5, Digest: "a"}) {
		t.Errorf("before the change is another one the answers are %+v", got)
	}
	o.Push(pull.Head{Commit: "h2", Patch: "p2"})
	if got := o.Answers(); len(got) != 2 || got[1] != (forge.PullRemark{Thread: 6, Digest: "b", Changed: true}) {
		t.Errorf("the answers are %+v", got)
	}
	seen.Head = "h2"
	for name, test := range map[string]struct {
		change func(*forge.PullReview)
		want   pull.Status
	}{
		"one is resolved":    {func(r *forge.PullReview) { r.Text, r.Remarks = "w a", []forge.PullRemark{whole, first} }, pull.Blocked},
		"a line has moved":   {func(r *forge.PullReview) { r.Text = "w a at another line" }, pull.Blocked},
		"it was taken along": {func(r *forge.PullReview) { r.Commit = "h2" }, pull.Blocked},
		"one more": {func(r *forge.PullReview) {
			r.Text, r.Remarks = "w a b c", append(slices.Clone(r.Remarks), forge.PullRemark{Thread: 7})
		}, pull.Unwanted},
		"another word": {func(r *forge.PullReview) {
			r.Text, r.Remarks = "x", []forge.PullRemark{whole, {Thread: 5, Digest: "x"}}
		}, pull.Unwanted},
		"by another one":      {func(r *forge.PullReview) { r.Account = "grace1" }, pull.Unwanted},
		"by an older gateway": {func(r *forge.PullReview) { r.Remarks = nil }, pull.Blocked},
	} {
		seen := *seen
		seen.Reviews = slices.Clone(seen.Reviews)
		test.change(&seen.Reviews[0])
		if got := o.Status(&forge.PullPolicy{}, &seen); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// TestQueuedStanding: in the forge's merge queue nothing of ours is in its way but a person's wish,
// a failed check, and a forge that wants it on the tip first. That it was taken out counts once.
func TestQueuedStanding(t *testing.T) {
	in := func(p *forge.PullRequest) { p.Queue = &forge.PullQueue{In: true, Position: 2} }
	out := func(cause string) func(p *forge.PullRequest) {
		return func(p *forge.PullRequest) { p.Queue = &forge.PullQueue{Out: "x1", Cause: cause, Reason: "so it is"} }
	}
	for name, test := range map[string]struct {
		change        func(*forge.PullRequest)
		want, settled pull.Status
	}{
		"not yet":                    {func(p *forge.PullRequest) { p.Queue = &forge.PullQueue{} }, pull.Ready, pull.Ready},
		"queued":                     {in, pull.Queued, pull.Queued},
		"queued, checks run again":   {func(p *forge.PullRequest) { in(p); p.Checks[0].State = forge.PullCheckPending }, pull.Queued, pull.Queued},
		"queued, a check failed":     {func(p *forge.PullRequest) { in(p); p.Checks[0].State = forge.PullCheckFailed }, pull.Failing, pull.Failing},
		"queued, and the tip wanted": {func(p *forge.PullRequest) { in(p); p.Behind = true }, pull.Behind, pull.Behind},
		"queued, another head":       {func(p *forge.PullRequest) { in(p); p.Head = "h9" }, pull.Edited, pull.Edited},
		"checks failed there":        {out(pull.QueueChecks), pull.Failing, pull.Ready},
		"it conflicts":               {out(pull.QueueConflict), pull.Behind, pull.Ready},
		"a person took it out":       {out(pull.QueueOther), pull.Removed, pull.Ready},
		"for a reason that is newer": {out("weather"), pull.Removed, pull.Ready},
		"for none that is told":      {out(""), pull.Removed, pull.Ready},
	} {
		seen := green()
		test.change(seen)
		o := ours
		if got := o.Status(&forge.PullPolicy{}, seen); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
		if got := o.Words(&forge.PullPolicy{}, seen); got == "" || test.want == pull.Queued && !strings.Contains(got, "at place 2") {
			t.Errorf("%s: it %s", name, got)
		}
		o.MarkDone(seen, "h2")
		if got := o.Status(&forge.PullPolicy{}, seen); got != test.settled {
			t.Errorf("%s, settled: %s, want %s", name, got, test.settled)
		}
	}
	seen := green()
	out(pull.QueueChecks)(seen)
	if got := ours.Failed(&forge.PullPolicy{}, seen); len(got) != 1 || got[0].Output != "so it is" {
		t.Errorf("failed have %+v", got)
	}
}

// TestLate: what is waited for is told by its name, whatever the forge shows of it.
func TestLate(t *testing.T) {
	seen := green()
	seen.Checks = append(seen.Checks, forge.PullCheck{Name: "deploy", State: forge.PullCheckPending}, forge.PullCheck{Name: "lint", State: "parked"})
	for name, test := range map[string]struct {
		policy []string
		want   string
	}{
		"none are named":            {nil, "deploy lint"},
		"one that is not there":     {[]string{"never", "build"}, "never"},
		"one that has not ended":    {[]string{"build", "deploy"}, "deploy"},
		"all of them have":          {[]string{"build", "slow"}, ""},
		"one that is in no state":   {[]string{"lint"}, "lint"},
		"the order is the policy's": {[]string{"lint", "deploy", "never"}, "lint deploy never"},
	} {
		if got := strings.Join(pull.Late(&forge.PullPolicy{Checks: test.policy}, seen), " "); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
	if got := pull.Late(&forge.PullPolicy{}, green()); len(got) > 0 {
		t.Errorf("all have passed, and %v are late", got)
	}
}

// TestName: people know a pull request by its repository and number, wherever the forge has it.
func TestName(t *testing.T) {
	for url, want := range map[string]string{
		"https://git.example.com/shop/web/pulls/7":             "shop/web#7",
		"https://github.com/shop/web/pull/7":                   "shop/web#7",
		"https://gitlab.com/shop/front/web/-/merge_requests/7": "shop/front/web!7",
		"https://git.example.com/shop/web/pulls/17":            "pull request 7",
		"https://git.example.com/shop/web/issues/7":            "pull request 7",
		"https://pulls/7": "pull request 7", "": "pull request 7", "nonsense": "pull request 7",
	} {
		if got := pull.Name(&forge.PullRequest{Number: 7, URL: url}); got != want {
			t.Errorf("%q is %q, want %q", url, got, want)
		}
	}
}
