package console

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/services/gateway/api"
	"github.com/pfl-forge/pfl-forge/services/gateway/tokens"
)

// Several plans of the inbox can be approved at once. Each is approved by itself, as by
// its own form: by the hash that was shown with it, if what its person saw is still so. So
// what became of one of them says nothing of the others, and the answer has all of them.

// batched tells of one of several approvals whether it was done.
type batched struct {
	*document.Detail
	// Why says why it was not done, as Changed does; both are empty if it was.
	// Open says instead that this is not known, or not decided yet.
	Why, Open string
	Changed   []string
}

// Batch returns the value by which an item is approved together with others:
// everything that its own form has. It is empty if it cannot be approved in the inbox.
func (p *pending) Batch() string {
	if !slices.ContainsFunc(p.Offers, func(o offer) bool { return o.Name == "approve" && o.Look == "" }) {
		return ""
	}
	return url.Values{"project": {string(p.Project)}, "intent": {string(p.Intent)}, "seen": {p.Seen}, "key": {p.Key}}.Encode()
}

// Batches reports whether there are several items that can be approved together.
func (p *inboxPage) Batches() bool {
	n := 0
	for _, one := range p.Items {
		if one.Batch() != "" {
			n++
		}
	}
	return n > 1
}

// approveAll approves the plans that were selected in the inbox.
func (v *visit) approveAll() error {
	picks := slices.Compact(slices.Sorted(slices.Values(v.r.PostForm["pick"])))
	if len(picks) == 0 || len(picks) > perInbox {
		return &refusal{http.StatusBadRequest, fmt.Sprintf("%d are selected; it can be 1 to %d. Nothing was done.", len(picks), perInbox)}
	}
	all, asked := make([]batched, len(picks)), make([]decision, len(picks))
	for i, pick := range picks { // before anything is done
		var err error
		if asked[i], err = pickOf(pick); err != nil {
			return err
		}
	}
	for i := range asked {
		all[i].decide(v, &asked[i])
	}
	return v.show(http.StatusOK, "batch", "Approved", all)
}

// pickOf reads the value of a box as an approval.
func pickOf(pick string) (d decision, err error) {
	q, err := url.ParseQuery(pick)
	if err != nil {
		return d, &refusal{http.StatusBadRequest, "The form is incomplete. Nothing was done."}
	}
	d = decision{name: "approve", form: q}
	if d.project, err = project(q.Get("project")); err != nil {
		return d, err
	}
	if d.intent, err = intent(q.Get("intent")); err != nil {
		return d, err
	}
	if d.seen, err = url.ParseQuery(q.Get("seen")); err != nil || len(d.seen) == 0 {
		return d, &refusal{http.StatusBadRequest, "The form does not say what you saw. Nothing was done."}
	}
	return d, nil
}

// decide takes one of the decisions, and notes what became of it.
func (one *batched) decide(v *visit, d *decision) {
	one.Detail = &document.Detail{State: document.State{Project: d.project, Intent: d.intent}}
	release, err := v.turn(forge.Key{Project: d.project, Intent: d.intent})
	if err == nil {
		defer release()
		err = one.approve(v, d)
	}
	p, told := asProblem(err)
	switch {
	case err == nil:
	case told && (p.Status < http.StatusInternalServerError || strings.Contains(p.Detail, "nothing was done")):
		one.Why = inWords(p)
	case told:
		one.Open = "It is not known whether this was done: the answer did not come. Approve it once more: it counts once."
	default:
		one.Why = sentence(err.Error())
	}
}

// approve hands an approval on, if what its person saw is still so and is in the inbox as a whole.
func (one *batched) approve(v *visit, d *decision) error {
	now, err := v.detail(d.project, d.intent)
	if p, ok := asProblem(err); ok { // nothing was sent
		one.Why = inWords(p)
		return nil
	} else if err != nil {
		return err
	}
	one.Detail = now
	if one.Changed = changed(d.seen, now); len(one.Changed) > 0 {
		if d.own(v.token, now) != nil {
			one.Changed = nil
		}
		return nil
	}
	if pendingOf(v.token, now, "inbox").Batch() == "" {
		one.Why = "It cannot be approved in the inbox."
		return nil
	}
	var done struct {
		Result string `json:"result"`
	}
	err = v.holder.Ask(v.r.Context(), api.Call{
		Method: http.MethodPost, Path: fmt.Sprintf("/api/v1/projects/%s/intents/%s/%s", d.project, d.intent, tokens.Approve), Key: d.key(),
		Content: map[string]any{"plan": d.seen.Get("plan")},
	}, &done)
	if err != nil {
		return err
	}
	if after, err := v.detail(d.project, d.intent); err == nil {
		one.Detail = after
	}
	switch {
	case done.Result == "accepted":
		one.Open = "Stored, and not decided yet: no runner has decided on it within five seconds. It will be: nothing needs to be sent again."
	case done.Result == "known" && d.own(v.token, one.Detail) == nil:
		one.Why = "It had been decided already."
	}
	return nil
}
