package console

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/services/gateway/api"
	"github.com/pfl-forge/pfl-forge/services/gateway/tokens"
)

// Several plans of the inbox can be approved at once. Each is approved by itself, as by its own form: by the hash that was shown with it, if what
// its person saw is still so. So what became of one of them says nothing of the others, and the answer has all of them.

// settled is what became of one of several approvals.
type settled struct {
	*document.Detail
	// Why says why it was not done, as Changed does; both are empty if it was. Stored says that it is not decided yet.
	Why     string
	Changed []string
	Stored  bool
}

// Batch returns what approves an item together with others: everything that its own form has. It is empty if it cannot be approved in the inbox.
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

// approveAll approves what was selected in the inbox.
func (v *visit) approveAll() error {
	picks := slices.Compact(slices.Sorted(slices.Values(v.r.PostForm["pick"])))
	if len(picks) == 0 || len(picks) > perInbox {
		return &refusal{http.StatusBadRequest, fmt.Sprintf("%d are selected; it can be 1 to %d. Nothing was done.", len(picks), perInbox)}
	}
	var all []settled
	for _, pick := range picks {
		one, err := approveOne(v, pick)
		if err != nil {
			return err
		}
		all = append(all, one)
	}
	return v.show(http.StatusOK, "batch", "Approved", all)
}

// approveOne approves one of them. Its error is about the form.
func approveOne(v *visit, pick string) (one settled, err error) {
	q, _ := url.ParseQuery(pick) // what is wrong with it is found below
	d := decision{name: "approve", form: q}
	if d.project, err = project(q.Get("project")); err != nil {
		return one, err
	}
	if d.intent, err = intent(q.Get("intent")); err != nil {
		return one, err
	}
	one.Detail = &document.Detail{State: document.State{Project: d.project, Intent: d.intent}}
	if d.seen, err = url.ParseQuery(q.Get("seen")); err != nil || len(d.seen) == 0 {
		return one, &refusal{http.StatusBadRequest, "The form does not say what you saw. Nothing more was done."}
	}
	release, err := v.turn(forge.Key{Project: d.project, Intent: d.intent})
	if err == nil {
		defer release()
		err = one.approve(v, &d)
	}
	if p, ok := asProblem(err); ok {
		one.Why, err = inWords(p), nil
	} else if err != nil {
		one.Why, err = sentence(err.Error()), nil
	}
	return one, err
}

// approve hands an approval on, if what its person saw is still so and is in the inbox as a whole.
func (one *settled) approve(v *visit, d *decision) error {
	now, err := v.detail(d.project, d.intent)
	if err != nil {
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
	if one.Stored = done.Result == "accepted"; done.Result == "known" && d.own(v.token, one.Detail) == nil {
		one.Why = "It had been decided already."
	}
	return nil
}
