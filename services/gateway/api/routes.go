package api

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/requests"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/messages"
	"github.com/pfl-forge/pfl-forge/services/gateway/tokens"
)

// Route is an address, and what is answered there.
type Route struct {
	// Method and Path are as net/http has them in patterns.
	Method, Path string
	// Verb says what is done. Whether the holder of a token may follows from it.
	Verb tokens.Verb
	// About says it for people.
	About string
	// Queries are the parameters of the query.
	Queries []Query
	// Statuses are those of an answer that is no problem.
	Statuses []int

	// serve answers a call that was admitted. Its error is answered as a problem.
	serve func(*call) error
}

// Query is a parameter of a query.
type Query struct {
	// Name is the parameter's, About a phrase for people.
	Name, About string
	// Many may be repeated.
	Many bool
}

// ofIntent reports whether the path names an intent.
func (r *Route) ofIntent() bool { return strings.Contains(r.Path, "{intent}") }

// Types returns the media types of the content that the route takes: JSON, and
// where a change is asked for a CloudEvent as well.
func (r *Route) Types() []string {
	if r.Verb == tokens.Submit {
		return []string{"application/json", "application/cloudevents+json"}
	}
	return []string{"application/json"}
}

// parameter returns the parameter of a name; nil if there is none.
func (r *Route) parameter(name string) *Query {
	for i := range r.Queries {
		if r.Queries[i].Name == name {
			return &r.Queries[i]
		}
	}
	return nil
}

// base begins every path.
const base = "/api/v1/projects/{project}"

// Routes returns every route.
func Routes() []Route {
	list := []Route{
		{
			http.MethodPost, base + "/intents", tokens.Submit, "Ask for a change.", nil,
			[]int{http.StatusOK, http.StatusCreated, http.StatusAccepted},
			(*call).submit,
		},
		{http.MethodGet, base + "/intents", tokens.List, "The intents of a project by their ids, a page at a time.", filters, []int{http.StatusOK}, (*call).list},
		{http.MethodGet, base + "/intents/{intent}", tokens.Show, "Everything that is known of an intent.", pages, []int{http.StatusOK}, (*call).show},
		{
			http.MethodGet, base + "/intents/{intent}/diff", tokens.Diff, "The change of an attempt, a page at a time.", changePages,
			[]int{http.StatusOK},
			(*call).diff,
		},
		{
			http.MethodGet, base + "/intents/{intent}/transcript", tokens.Transcript, "What an agent or command did in an attempt, a page at a time.",
			transcriptPages,
			[]int{http.StatusOK},
			(*call).transcript,
		},
		{http.MethodGet, base + "/costs", tokens.Costs, "What the agents of a project used.", costQueries, []int{http.StatusOK}, (*call).costs},
		{
			http.MethodGet, base + "/settings", tokens.Settings, "The settings of a project, and where each comes from.", nil,
			[]int{http.StatusOK},
			(*call).settings,
		},
		{
			http.MethodGet, base + "/health", tokens.Health, "How the work of a project went, by week: ends, rework, durations, waits and flaky commands.",
			healthQueries,
			[]int{http.StatusOK},
			(*call).health,
		},
		{
			http.MethodGet, base + "/queue", tokens.Queue, "The merge queue of a project, with estimates, and what keeps all its work waiting.", queueQueries,
			[]int{http.StatusOK},
			(*call).queue,
		},
		{
			http.MethodGet, base + "/intents/{intent}/timeline", tokens.Timeline, "The records of an intent, with its attempts and waits, a page at a time.",
			timelinePages,
			[]int{http.StatusOK},
			(*call).timeline,
		},
		{
			http.MethodGet, base + "/whole", tokens.Overview, "The state of a project and of its intents as the rules have it, for the command line.", overviewPages,
			[]int{http.StatusOK},
			(*call).whole,
		},
		{
			http.MethodGet, base + "/intents/{intent}/whole", tokens.Whole, "The state of an intent as the rules have it, for the command line.", wholePages,
			[]int{http.StatusOK},
			(*call).whole,
		},
		{
			http.MethodGet, base + "/audit", tokens.Audit, "Who did what in a project, the newest first, and whether its journals prove it, a page at a time.",
			auditPages,
			[]int{http.StatusOK},
			(*call).audit,
		},
		{
			http.MethodGet, base + "/events", tokens.Follow, "The changes of a project's intents, as server-sent events: those after Last-Event-ID, " +
				"or from now on.", nil, []int{http.StatusOK}, (*call).follow,
		},
	}
	for _, w := range acts {
		list = append(list, Route{
			http.MethodPost, base + "/intents/{intent}/" + string(w.verb), w.verb, w.about, nil, []int{http.StatusOK, http.StatusAccepted}, (*call).act,
		})
	}
	return list
}

// acts lists the verbs by which people change what becomes of an intent.
var acts = []struct {
	verb  tokens.Verb
	about string
}{
	{tokens.Edit, "Change the text, the type or the risk of an intent that has not begun."},
	{tokens.Answer, "Answer a question."},
	{tokens.Approve, "Approve exactly the plan, or the change, whose hash the intent has as plan."},
	{tokens.Change, "Have exactly the plan, or the change, whose hash the intent has as plan made again, with words."},
	{tokens.Reject, "End an intent that waits for a person."},
	{tokens.Retry, "Run again what failed or waits."},
	{tokens.Cancel, "Stop an intent, or one of its tasks. What is merged stays."},
	{tokens.Pause, "Stop agents, and keep what they did, until resume."},
	{tokens.Resume, "Continue what was paused."},
}

// filters are the parameters of a list.
var filters = []Query{
	{"status", "one of: " + strings.Join(document.Statuses, ", "), true},
	{"waiting", "one of: " + strings.Join(document.Waits, ", "), true},
	{"type", "such as feature, fix or audit", true},
	{"label", "a label that an intent has; of several, all", true},
	{"requester", "a person or system that asked, or whose words are in it", false},
	{"priority", "the least that an intent has", false},
	{"agent", "an agent that works on it, or has worked on it", false},
	{"since", "by when it last changed, such as 2026-03-01T12:00:00Z", false},
	{"after", "the id after which the page begins: next of the previous answer", false},
	{"limit", "how many, at most 500; 100 if it is left out", false},
}

// pages are the parameters of an intent.
var pages = []Query{
	{"part", "one of: " + strings.Join(document.Parts, ", ") + "; without it the newest of all that there is room for", false},
	{"after", "how many items of the part to pass over: from and shown of truncated, added up", false},
}

// answer writes an answer as JSON.
func (c *call) answer(status int, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	c.w.Header().Set("Content-Type", "application/json")
	c.w.WriteHeader(status)
	_, _ = c.w.Write(append(data, '\n')) // whoever asked may have gone
	return nil
}

// submit asks for a change.
func (c *call) submit() error {
	who := c.caller()
	in, err := c.api.cfg.Bus.Submissions.ReadIntentFor(c.project, who, c.key, c.body)
	if err != nil {
		return err
	}
	c.intent = in.ID
	done, err := c.api.cfg.Bus.Submissions.SubmitFor(c.r.Context(), who, in)
	if err != nil {
		return err
	}
	c.log(done.Result)
	status := map[string]int{"new": http.StatusCreated, "known": http.StatusOK, "accepted": http.StatusAccepted}[done.Result]
	if status == http.StatusCreated {
		c.w.Header().Set("Location", "/api/v1/projects/"+string(c.project)+"/intents/"+string(c.intent))
	}
	return c.answer(status, done)
}

// act asks for what a person wants of an intent.
func (c *call) act() error {
	m, err := requests.ReadAct(string(c.route.Verb), c.body)
	if err != nil {
		return err
	}
	if a, ok := m.(*forge.Answer); ok && messages.Approves(a.Answer) && !c.token.May(c.project, tokens.Approve) {
		return problem(http.StatusForbidden, "the answer \"approve\" may approve a change, and "+c.token.Barred(c.who(), tokens.Approve))
	}
	key := forge.Key{Project: c.project, Intent: c.intent}
	done, err := c.api.cfg.Bus.Submissions.AskFor(c.r.Context(), c.caller(), key, c.key, m)
	if err != nil {
		return err
	}
	status := http.StatusOK
	switch done.Result {
	case "accepted":
		status = http.StatusAccepted
	case "new":
		done.Result = "applied"
	}
	c.log(done.Result)
	return c.answer(status, done)
}

// log notes that something was handed on, with the request's id, which the journal has as
// well. Neither the words of whoever asked nor their token are in it.
func (c *call) log(result string) {
	name, _ := c.token.Holder()
	c.api.cfg.Log.InfoContext(c.r.Context(), "handed on", "request", c.id, "verb", string(c.route.Verb), "token", c.token.Name, "holder", name,
		"project", string(c.project), "intent", string(c.intent), "result", result)
}

// list answers with the intents of a project.
func (c *call) list() error {
	q := c.r.URL.Query()
	ask := requests.ListRequest{After: q.Get("after"), Agent: q.Get("agent")}
	ask.Filter = document.Filter{Status: q["status"], Waiting: q["waiting"], Type: q["type"], Labels: q["label"], Requester: q.Get("requester")}
	var err error
	if ask.Filter.Since, err = instant(q, "since"); err != nil {
		return err
	}
	if text, given := q["priority"]; given {
		n, err := strconv.Atoi(text[0])
		if err != nil {
			return wrong("priority", "is not a whole number")
		}
		ask.Filter.Priority = &n
	}
	if text, given := q["limit"]; given {
		n, err := strconv.Atoi(text[0])
		if err != nil || n == 0 {
			return wrong("limit", "is not a whole number from 1 to 500")
		}
		ask.Limit = n
	}
	found, err := c.api.cfg.Bus.Submissions.List(c.r.Context(), c.project, c.api.cfg.Account, ask)
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, found)
}

// show answers with an intent.
func (c *call) show() error {
	q := c.r.URL.Query()
	page := document.Page{Part: q.Get("part")}
	if text, given := q["after"]; given {
		var err error
		if page.After, err = strconv.Atoi(text[0]); err != nil {
			return wrong("after", "is not a whole number")
		}
	}
	found, err := c.api.cfg.Bus.Submissions.Show(c.r.Context(), forge.Key{Project: c.project, Intent: c.intent}, c.api.cfg.Account, page)
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, found)
}
