package console

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/nats-io/nuid"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/services/gateway/api"
	"github.com/pfl-forge/pfl-forge/services/gateway/concealed"
	"github.com/pfl-forge/pfl-forge/services/gateway/console/room"
	"github.com/pfl-forge/pfl-forge/services/gateway/console/visible"
	"github.com/pfl-forge/pfl-forge/services/gateway/tokens"
)

// perInbox is how many pending decisions a page has, each with everything that it takes to
// decide.
const perInbox = 10

// inboxPage has the data of the inbox.
type inboxPage struct {
	Items []*pending
	// From and To are the places of the first and the last one among Total.
	From, To, Total int
	// Others counts the intents that wait for people with other roles.
	Others         int
	Earlier, Later string
	// More says that there are more intents than were looked at, and Unread
	// names projects that cannot be read.
	More   bool
	Unread []forge.ProjectID
	// About is the intent that was decided on last; nil for none.
	About *document.Detail
	// Last is the last decision on it.
	Last *document.Decided
}

// pending is a decision that waits for a person.
type pending struct {
	document.Detail
	// Offers are the decisions that they may take, Asked the questions that they may answer.
	Offers    []offer
	Asked     []question
	Objection string // why they may not approve
	// Seen is its state as the page shows it, and Key their own id of the decision.
	Seen, Key string
	From      string // the page on which they decide
	// Only is the task whose change is made again where changes are asked for;
	// empty: all that wait.
	Only forge.TaskID
	// Concealed are the parts of the request that a page which shows it as
	// Markdown would hide, while it waits for approval.
	Concealed []concealed.Finding
	// Others are the people who may take them besides, in words; empty where that is not told.
	Others string
	// Long says that the inbox has not everything that is decided about, which is too long for it.
	Long bool
}

// perItem bounds an item of the inbox, in bytes of the page. What is longer is decided about on
// its own page.
const perItem = 32 << 10

// size returns about how many bytes of a page everything takes that is decided about.
func (p *pending) size() int {
	n := room.Of(&p.Detail, p.Concealed)
	for i := range p.Asked {
		q := &p.Asked[i]
		n += visible.Size(q.Question) + visible.Size(q.Context) + 2*visible.Size(strings.Join(q.SuggestedAnswers, "\n")) + 1000
	}
	return n
}

// pendingOf returns the decision about an intent.
func pendingOf(t *tokens.Token, d *document.Detail, from string) *pending {
	p := &pending{Detail: *d, Offers: offersFor(t, d), Seen: seenOf(d), Key: nuid.Next(), From: from}
	if t.May(d.Project, tokens.Answer) {
		p.Asked = questions(d, t.May(d.Project, tokens.Change))
	}
	if d.Waiting == forge.WaitingApproval {
		p.Concealed = concealed.In(d.Title, d.Body)
	}
	if d.Waiting == forge.WaitingApproval && t.May(d.Project, tokens.Approve) {
		p.Objection = objection(t, d)
	}
	if from != "inbox" {
		return p
	}
	// A change is decided about where it is shown, and what the inbox has no room for as well.
	p.Long = len(p.Cut()) > 0 || p.size() > perItem
	for i := range p.Offers {
		if o := &p.Offers[i]; o.Name == "approve" && (made(d) || p.Long) {
			o.Look = p.Path()
		}
	}
	if p.Long {
		p.Asked = nil
	}
	for i := range p.Asked {
		if q := &p.Asked[i]; q.Decides != nil {
			q.Look = address(p.Path(), url.Values{"task": {string(q.Task)}})
		}
	}
	return p
}

// Edits returns the edits of the request after it was asked for, as far as its decisions are here.
func (p *pending) Edits() (list []document.Decided) {
	for i := range p.Decisions {
		if p.Decisions[i].What == "edit" {
			list = append(list, p.Decisions[i])
		}
	}
	return list
}

// Edit returns the last edit of the request; nil without one.
func (p *pending) Edit() *document.Decided {
	list := p.Edits()
	if len(list) == 0 {
		return nil
	}
	return &list[len(list)-1]
}

// Cut returns the parts of the plan that are left out.
func (p *pending) Cut() (list []document.Truncated) {
	for _, t := range p.Truncated {
		if strings.HasPrefix(t.Field, "work") || strings.HasPrefix(t.Field, "parts") {
			list = append(list, t)
		}
	}
	return list
}

// inbox shows what waits for whoever is signed in, oldest first.
func (v *visit) inbox() error {
	ctx, ask := v.r.Context(), url.Values{"waiting": document.Waits}
	projects := v.listable()
	v.live = projects[:min(len(projects), mostProjects)]
	all, err := v.collect(ctx, projects, ask)
	if err != nil {
		return err
	}
	page := inboxPage{More: all.More, Unread: all.Unread}
	list := slices.DeleteFunc(all.Intents, func(s document.State) bool { return !mine(v.token, &s) })
	page.Others = len(all.Intents) - len(list)
	slices.SortFunc(list, func(a, b document.State) int {
		return cmp.Or(a.UpdatedAt.Compare(b.UpdatedAt), cmp.Compare(a.Intent, b.Intent))
	})
	n, err := strconv.Atoi(v.r.URL.Query().Get("page"))
	if err != nil || n < 1 {
		n = 1
	}
	page.Total = len(list)
	from := min((n-1)*perInbox, page.Total)
	page.To = min(from+perInbox, page.Total)
	page.From = min(from+1, page.Total)
	for _, s := range list[from:page.To] {
		if slices.Contains(page.Unread, s.Project) {
			continue
		}
		d, err := v.detail(s.Project, s.Intent)
		if status := statusOf(err); err != nil && (status == 0 || status >= http.StatusInternalServerError) && page.Total > 1 {
			page.Unread = append(page.Unread, s.Project) // the others can be decided about all the same
			continue
		}
		if err != nil {
			return err
		}
		if d.Waiting != "" { // it may have gone on meanwhile
			page.Items = append(page.Items, pendingOf(v.token, d, "inbox"))
		}
	}
	if n > 1 {
		page.Earlier = Base + "inbox?page=" + strconv.Itoa(n-1)
	}
	if page.To < page.Total {
		page.Later = Base + "inbox?page=" + strconv.Itoa(n+1)
	}
	setOthers(v, page.Items...)
	if err := page.about(v); err != nil {
		return err
	}
	return v.show(http.StatusOK, "inbox", "Inbox", &page)
}

// about reads the intent that was decided on last, as the address says. What is shown of it is
// the journal's, so an address that was made up says nothing that is not true.
func (p *inboxPage) about(v *visit) error {
	q := v.r.URL.Query()
	if q.Get("project") == "" {
		return nil
	}
	proj, err := project(q.Get("project"))
	if err != nil {
		return err
	}
	id, err := intent(q.Get("intent"))
	if err != nil {
		return err
	}
	if p.About, err = v.detail(proj, id); err != nil {
		return err
	}
	if n := len(p.About.Decisions); n > 0 {
		p.Last = &p.About.Decisions[n-1]
	}
	return nil
}

// detail reads everything about an intent that one answer has room for.
func (v *visit) detail(p forge.ProjectID, id forge.IntentID) (*document.Detail, error) {
	d := &document.Detail{}
	return d, v.ask(v.r.Context(), p, "/intents/"+string(id), d)
}

// intent returns the intent that a path or query names, as an id.
func intent(text string) (forge.IntentID, error) {
	id, err := forge.ParseIntentID(text)
	if err != nil {
		return "", &refusal{http.StatusBadRequest, sentence("There is no intent of this name: " + err.Error())}
	}
	return id, nil
}

// asProblem returns the problem of the API that an error is.
func asProblem(err error) (*api.Problem, bool) { return errors.AsType[*api.Problem](err) }

// statusOf returns the status of a problem of the API; 0 for another error.
func statusOf(err error) int {
	if p, ok := asProblem(err); ok {
		return p.Status
	}
	return 0
}
