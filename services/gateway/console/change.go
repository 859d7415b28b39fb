package console

import (
	"cmp"
	"maps"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/services/gateway/console/board"
	"github.com/pfl-forge/pfl-forge/services/gateway/console/visible"
	"github.com/pfl-forge/pfl-forge/verdict"
)

// changePage has the data of the page on which a reviewer decides.
type changePage struct {
	*pending
	// Submitted is the decision by which the intent came in; nil where it is not told.
	Submitted *document.Decided
	// Hidden counts the characters of the request that cannot be seen.
	Hidden int
	// Task is the one that is looked at; nil before there is a plan. Tasks leads to the others.
	Task  *document.Task
	Tasks []board.Tab
	// Proof says how far the change of the task is proven.
	Proof proof
	// Review is the last verdict on it, and Earlier are the ones before.
	Review  *document.Review
	Earlier []document.Review
	// Failures are the times when it could not be put on the base branch, or did not pass there.
	Failures []document.Verified
	// Rules are those that changed its course.
	Rules []document.Adjustment
	// Steps are its attempts, with their transcripts.
	Steps  []document.StepRecord
	Change *changeView
	// NoChange says why there is no change to show.
	NoChange string
	// Waits are the changes that wait for a person, and Withheld says why they are not approved here.
	Waits    []candidate
	Withheld string
}

// proof is the line that says what is known of a change.
type proof struct {
	// Verified is the last time that it was found out whether the change is good on the base
	// branch; nil if it was not. State says what came of it, and Good whether that lets it go on.
	Verified *document.Verified
	State    string
	Good     bool
	// Reviewed says that the last review is one of the newest change. Met and Claims count its requirements.
	Reviewed    bool
	Met, Claims int
	// Protected says that it changes protected paths. Known is false where that is not known, or not yet.
	Protected, Known bool
	// AsItWas are the reasons to look that a check gives which the change alters and which fails as it was.
	AsItWas []string
	// Old counts requirements that are met by nothing but what was there before the change.
	Old int
	// Other is another review of the same commit that comes to another verdict; nil if there is none.
	Other *document.Review
	// Attempts counts implementations, and CostUSD adds up everything that the task cost.
	Attempts int
	CostUSD  float64
}

// changeView is a page of the diff.
type changeView struct {
	document.Diff
	// Names are all files of the change, those that the plan does not name first; Unplanned
	// counts these.
	Names     []fileName
	Unplanned int
	// More leads to the next page, and First to the first one; empty where there is none.
	More, First string
	// Former are the attempts with which it can be compared.
	Former []board.Tab
}

// fileName is a file of a change, with the page that begins with its lines.
type fileName struct {
	document.DiffFile
	Address string
}

// change shows everything that it takes to decide about an intent, in the order in which a
// reviewer asks for it.
func (v *visit) change() error {
	p, id, err := v.named()
	if err != nil {
		return err
	}
	d, err := v.detail(p, id)
	if err != nil {
		return err
	}
	v.live = []forge.ProjectID{p}
	page := changePage{pending: pendingOf(v.token, d, "change"), Hidden: hiddenIn(d.Body)}
	for i := range d.Decisions {
		if d.Decisions[i].What == "submit" {
			page.Submitted = &d.Decisions[i]
		}
	}
	task := v.r.URL.Query().Get("task")
	if err := page.choose(task); err != nil {
		return err
	}
	if page.Task != nil {
		page.look()
		page.Proof = page.proof()
		if err := page.diff(v); err != nil {
			return err
		}
	}
	page.candidates(v.token)
	return v.show(http.StatusOK, "change", d.Title, &page)
}

// named returns the intent that the path names.
func (v *visit) named() (p forge.ProjectID, id forge.IntentID, err error) {
	if p, err = project(v.r.PathValue("project")); err != nil {
		return p, id, err
	}
	id, err = intent(v.r.PathValue("intent"))
	return p, id, err
}

// Path returns the address of the page of an intent.
func (p *pending) Path() string { return intentPath(p.Project, p.Intent) }

// choose finds the task to look at: the one that is named, the first whose change waits for a person, or the first that
// is not done.
func (c *changePage) choose(name string) error {
	list := c.PlanTasks
	i := slices.IndexFunc(list, func(t document.Task) bool { return string(t.ID) == name })
	if name != "" && i < 0 {
		return &refusal{http.StatusNotFound, "The intent has no task of this name, or not any more."}
	}
	if waits := c.waiting(); i < 0 && len(waits) > 0 {
		i = slices.IndexFunc(list, func(t document.Task) bool { return t.ID == waits[0].Task })
	}
	if i < 0 {
		i = max(slices.IndexFunc(list, func(t document.Task) bool { return t.Status != forge.TaskDone }), 0)
	}
	for n := range list {
		c.Tasks = append(c.Tasks, board.Tab{
			Name: list[n].Title, Address: address(c.Path(), url.Values{"task": {string(list[n].ID)}}), Count: n + 1, Here: n == i,
		})
	}
	if i < len(list) {
		c.Task = &list[i]
	}
	return nil
}

// look picks the records about the task.
func (c *changePage) look() {
	id := c.Task.ID
	for i := range c.Reviews {
		if r := &c.Reviews[i]; r.Task == id {
			if c.Review != nil {
				c.Earlier = append(c.Earlier, *c.Review)
			}
			c.Review = r
		}
	}
	for _, r := range c.Verified {
		if r.Task == id && (len(r.Conflicts) > 0 || r.Passed != nil && !*r.Passed) {
			c.Failures = append(c.Failures, r)
		}
	}
	for _, a := range c.Adjustments {
		if a.Task == id || a.Task == "" {
			c.Rules = append(c.Rules, a)
		}
	}
	for i := range c.Work.Steps {
		if s := &c.Work.Steps[i]; s.Task == id || s.Task == "" {
			c.Steps = append(c.Steps, *s)
		}
	}
}

// proof returns how far the task's change is proven.
func (c *changePage) proof() (p proof) {
	p.Attempts = c.Task.Attempts
	for i := range c.Verified {
		r := &c.Verified[i]
		if r.Task != c.Task.ID || !c.current(r.PatchID, r.Head) {
			continue
		}
		switch { // where no command ran, nothing was found out
		case len(r.Conflicts) > 0:
			p.Verified, p.State, p.Good = r, "conflicts", false
		case r.Passed != nil && *r.Passed:
			p.Verified, p.State, p.Good = r, "verified", true
		case r.Passed != nil:
			p.Verified, p.State, p.Good = r, "verify failed", false
		}
	}
	if c.Review != nil && c.current("", c.Review.Head) {
		p.reviewed(c.Review, c.Earlier)
	}
	if p.Verified != nil {
		p.AsItWas = slices.DeleteFunc(slices.Clone(p.Verified.Guarded), func(s string) bool { return !verdict.IsFailsAsItWas(s) })
	}
	for _, a := range c.Rules {
		p.Protected = p.Protected || a.Rule == "protected-paths" && a.Task == c.Task.ID
	}
	// A change is compared with them once it is approved by its reviewers: before it is merged, that there was no reason
	// is not known.
	cut := slices.ContainsFunc(c.Truncated, func(t document.Truncated) bool { return t.Field == "adjustments" })
	p.Known = p.Protected || c.Task.Commit != "" && !cut
	for i := range c.Steps {
		if c.Steps[i].Task == c.Task.ID {
			p.CostUSD += c.Steps[i].CostUSD
		}
	}
	return p
}

// reviewed takes the last review of the change, and those before it.
func (p *proof) reviewed(r *document.Review, earlier []document.Review) {
	p.Reviewed, p.Claims = true, len(r.Claims)
	for i := range r.Claims {
		if r.Claims[i].Met {
			p.Met++
		}
		if old(r.Claims[i]) {
			p.Old++
		}
	}
	for i := range earlier {
		if o := &earlier[i]; o.Head == r.Head && o.Verdict != r.Verdict {
			p.Other = o
		}
	}
}

// old reports whether a requirement is met by nothing but what was there before the change.
func old(c document.Claim) bool {
	return c.Met && c.Run == nil && len(c.Evidence) > 0 && !slices.ContainsFunc(c.Evidence, func(e document.Citation) bool { return !e.Unchanged })
}

// proves reports whether a run is a regression proof: it shows what the tests of a change say without the change.
func proves(c document.Check) bool { return c.Name == verdict.RegressionProof }

// current reports whether a patch, or a commit, is the newest change of the task, as far as the journal says: what was
// found out about a former one says nothing about it. Put on another base, it is another commit and the same patch.
func (c *changePage) current(id, head string) bool {
	if id == "" {
		for i := range c.Verified {
			if r := &c.Verified[i]; r.Task == c.Task.ID && r.Head == head {
				id = r.PatchID
			}
		}
	}
	if id != "" && c.Task.PatchID != "" {
		return id == c.Task.PatchID
	}
	return head != "" && head == c.Task.Head
}

// diff reads a page of the task's change. That there is none is no error: the rest of the page
// is of use all the same.
func (c *changePage) diff(v *visit) error {
	q := v.r.URL.Query()
	ask := url.Values{"task": {string(c.Task.ID)}}
	for _, name := range []string{"step", "attempt", "since"} {
		if value := q.Get(name); value != "" {
			ask.Set(name, value)
		}
	}
	view := &changeView{}
	var names document.Diff
	ask.Set("stat", "true")
	err := v.ask(v.r.Context(), c.Project, "/intents/"+string(c.Intent)+"/diff?"+ask.Encode(), &names)
	if err == nil {
		ask.Del("stat")
		// The pages that follow are of this attempt, whatever is the newest when they are asked for.
		ask.Set("step", string(names.Step))
		ask.Set("attempt", strconv.Itoa(names.Attempt))
		if after := q.Get("after"); after != "" {
			ask.Set("after", after)
		}
		err = v.ask(v.r.Context(), c.Project, "/intents/"+string(c.Intent)+"/diff?"+ask.Encode(), &view.Diff)
	}
	if p, ok := asProblem(err); ok && p.Status < http.StatusInternalServerError && p.Status != http.StatusUnauthorized {
		if p.Status == http.StatusBadRequest {
			return err
		}
		c.NoChange = inWords(p)
		return nil
	}
	if err != nil {
		return err
	}
	for i := range names.Files {
		f := &names.Files[i]
		if unnamed(f) {
			view.Unplanned++
		}
		q := maps.Clone(ask)
		q.Set("after", document.DiffAt(i))
		view.Names = append(view.Names, fileName{*f, address(c.Path(), q) + "#diff"})
	}
	slices.SortStableFunc(view.Names, func(a, b fileName) int { return first(a.DiffFile, b.DiffFile) })
	slices.SortStableFunc(view.Files, first)
	view.lead(c, ask)
	c.Change = view
	return nil
}

// lead makes the addresses of other pages, and of comparisons with former attempts.
func (d *changeView) lead(c *changePage, ask url.Values) {
	if d.Next != "" {
		q := maps.Clone(ask)
		q.Set("after", d.Next)
		d.More = address(c.Path(), q) + "#diff"
	}
	if ask.Has("after") {
		q := maps.Clone(ask)
		q.Del("after")
		d.First = address(c.Path(), q) + "#diff"
	}
	add := func(since int, name string) {
		q := url.Values{"task": {string(d.Task)}, "step": {string(d.Step)}, "attempt": {strconv.Itoa(d.Attempt)}}
		if since > 0 {
			q.Set("since", strconv.Itoa(since))
		}
		here := d.Since == nil && since == 0 || d.Since != nil && d.Since.Attempt == since
		d.Former = append(d.Former, board.Tab{Name: name, Address: address(c.Path(), q) + "#diff", Here: here})
	}
	for i := range c.Steps {
		s := &c.Steps[i]
		if s.Task == d.Task && s.Step == d.Step && s.Attempt < d.Attempt {
			if len(d.Former) == 0 {
				add(0, "the whole change")
			}
			add(s.Attempt, "since attempt "+strconv.Itoa(s.Attempt))
		}
	}
}

// first orders files: those that the plan does not name, then the others, then those that a
// program makes.
func first(a, b document.DiffFile) int {
	rank := func(f *document.DiffFile) int {
		switch {
		case unnamed(f):
			return 0
		case generated(f.Path):
			return 2
		}
		return 1
	}
	return cmp.Compare(rank(&a), rank(&b))
}

// unnamed reports whether there is a plan, and it does not name the file.
func unnamed(f *document.DiffFile) bool { return f.Planned != nil && !*f.Planned }

// generated reports whether a file is one that programs make, by its name. Such a file is
// folded, and shown as all others when it is opened.
func generated(name string) bool {
	base := path.Base(name)
	for _, end := range []string{".pb.go", "_pb2.py", ".min.js", ".min.css", ".map", ".snap", ".lock", "-lock.json", "-lock.yaml", ".sum"} {
		if strings.HasSuffix(base, end) {
			return true
		}
	}
	return strings.Contains(base, ".gen.") || strings.Contains(base, "generated") || strings.Contains("/"+name, "/vendor/") ||
		strings.Contains("/"+name, "/node_modules/")
}

// manyLines is how many changed lines a file may have that is shown opened.
const manyLines = 400

// folded reports whether a file is shown closed: one that a program makes, or a large one. One
// that the plan does not name is never closed.
func folded(f document.DiffFile) bool {
	return !unnamed(&f) && (generated(f.Path) || f.Added+f.Deleted > manyLines)
}

// hiddenIn counts the characters of a text that cannot be seen.
func hiddenIn(text string) (n int) {
	for _, p := range visible.Reveal(text) {
		n += p.Count
	}
	return n
}
