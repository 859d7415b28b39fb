package console

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/services/gateway/console/board"
	"github.com/pfl-forge/pfl-forge/services/gateway/console/files"
	"github.com/pfl-forge/pfl-forge/services/gateway/console/proof"
	"github.com/pfl-forge/pfl-forge/services/gateway/console/visible"
)

// changePage has the data of the page on which a reviewer decides.
type changePage struct {
	*pending
	// Records are those about the task that is looked at.
	proof.Records

	// Submitted is the decision by which the intent came in; nil where it is not told.
	Submitted *document.Decided
	// Hidden counts the characters of the request that cannot be seen.
	Hidden int
	// Task is the one that is looked at; nil before there is a plan. Tasks leads to the others.
	Task  *document.Task
	Tasks []board.Tab
	// Proof says how far the change of the task is proven.
	Proof  proof.Proof
	Change *files.View
	// Guards are the protected paths that are to be expected of it; nil where
	// that is known, or cannot be told.
	Guards *files.Guards
	// NoChange says why there is no change to show.
	NoChange string
	// Place is where the change is in the merge queue, and Pull its pull
	// request; each is nil without one, or where it cannot be told.
	Place *document.QueuedChange
	Pull  *document.QueuedPull
	// Waits are the changes that wait for a person, and Withheld says why they
	// are not approved here.
	Waits    []candidate
	Withheld string
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
	page := changePage{pending: pendingOf(v.token, d, "change"), Hidden: visible.Hidden(d.Body)}
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
		page.queued(v)
		page.guards(v)
		if err := page.diff(v); err != nil {
			return err
		}
	}
	page.candidates(v.token, len(page.Asked) > 0 && barsRequesters(v, p))
	setOthers(v, page.pending)
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

// choose finds the task to look at: the one that is named, the first whose
// change waits for a person, or the first that is not done.
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

// look picks the records about the task, and says how far its change is proven.
func (c *changePage) look() {
	c.Records = proof.About(&c.Work, c.Task.ID)
	c.Proof = proof.Of(&c.Work, c.Task, &c.Records)
}

// guards reads which protected paths are to be expected of the change, while
// the rules do not say it. A policy that cannot be read tells none.
func (c *changePage) guards(v *visit) {
	if c.Proof.Known || c.Task.Commit != "" {
		return
	}
	if s := setting(v, c.Project, "policy.protected_paths"); s != nil && s.Value != "" {
		c.Guards = files.Expect(strings.Split(s.Value, "\n"), &c.Work, c.Task, planned(&c.Detail))
	}
}

// queued finds the change of the task in the merge queue, and its pull request.
// That a runner cannot tell them is no error: the page is of use without.
func (c *changePage) queued(v *visit) {
	var q document.Queue
	if err := v.ask(v.r.Context(), c.Project, "/queue?"+url.Values{"intent": {string(c.Intent)}}.Encode(), &q); err != nil {
		return
	}
	if i := slices.IndexFunc(q.Changes, func(one document.QueuedChange) bool { return one.Task == c.Task.ID }); i >= 0 {
		c.Place = &q.Changes[i]
	}
	if i := slices.IndexFunc(q.Pulls, func(one document.QueuedPull) bool { return one.Task == c.Task.ID }); i >= 0 {
		c.Pull = &q.Pulls[i]
	}
}

// OpenPull returns the pull request if people can do something there; nil otherwise.
func (c *changePage) OpenPull() *document.QueuedPull {
	if c.Pull == nil || c.Pull.State != forge.PullOpen || c.Pull.URL == "" {
		return nil
	}
	return c.Pull
}

// Bound returns the hash that the button of the page approves changes by; empty
// where it approves none.
func (c *changePage) Bound() string {
	if len(c.Waits) == 0 || !made(&c.Detail) {
		return ""
	}
	return c.Plan
}

// diff reads a page of the task's change. That there is none is no error: the rest of the page
// is of use all the same.
func (c *changePage) diff(v *visit) error {
	q := v.r.URL.Query()
	ask := url.Values{"task": {string(c.Task.ID)}}
	for _, name := range []string{"step", "attempt", "since", "whitespace"} {
		if value := q.Get(name); value != "" {
			ask.Set(name, value)
		}
	}
	var d, names document.Diff
	ask.Set("stat", "true")
	err := v.ask(v.r.Context(), c.Project, "/intents/"+string(c.Intent)+"/diff?"+ask.Encode(), &names)
	if err == nil {
		ask.Del("stat")
		// The pages that follow are of this attempt, whatever is the newest
		// when they are asked for.
		ask.Set("step", string(names.Step))
		ask.Set("attempt", strconv.Itoa(names.Attempt))
		if after := q.Get("after"); after != "" {
			ask.Set("after", after)
		}
		err = v.ask(v.r.Context(), c.Project, "/intents/"+string(c.Intent)+"/diff?"+ask.Encode(), &d)
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
	c.Change = files.Of(&d, &names, c.Path(), ask, c.Steps)
	return nil
}
