package console

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/services/gateway/api"
	"github.com/pfl-forge/pfl-forge/services/gateway/console/phrase"
	"github.com/pfl-forge/pfl-forge/services/gateway/console/session"
	"github.com/pfl-forge/pfl-forge/services/gateway/tokens"
)

// decision is one that a person took in a form.
type decision struct {
	project forge.ProjectID
	intent  forge.IntentID
	// name is that of the offer; answer for an answer.
	name string
	// seen is the state as their page showed it.
	seen url.Values
	form url.Values
}

// seenOf returns the state of an intent as a form keeps it: whatever of it changes makes
// another decision of the same button.
func seenOf(d *document.Detail) string {
	return url.Values{
		"status": {string(d.Status)}, "waiting": {string(d.Waiting)}, "plan": {d.Plan}, "run": {strconv.Itoa(d.Run)},
		"at": {d.UpdatedAt.UTC().Format(time.RFC3339Nano)},
	}.Encode()
}

// changed returns in words how an intent differs from what a person saw; empty if it does not.
func changed(seen url.Values, d *document.Detail) (list []string) {
	for _, one := range []struct{ name, was, is string }{
		{"Its status", seen.Get("status"), string(d.Status)},
		{"What it waits for", seen.Get("waiting"), string(d.Waiting)},
		{"What there is to approve", seen.Get("plan"), d.Plan},
		{"The run", seen.Get("run"), strconv.Itoa(d.Run)},
	} {
		if one.was != one.is {
			list = append(list, fmt.Sprintf("%s was %s, and is %s now.", one.name, phrase.Quoted(one.was), phrase.Quoted(one.is)))
		}
	}
	return list
}

// stalePage says why a decision was not done.
type stalePage struct {
	Title string
	// Why it was not done, and Changed what is different from what the person saw.
	Why     string
	Changed []string
	// Since are the decisions of others since they saw it.
	Since  []document.Decided
	Intent *document.Detail
	// Again are the fields by which the same can be sent once more; nil where that would not help.
	Again []field
	// Path is where they are sent.
	Path string
	// Words are those that the person typed, so that they are not lost; empty
	// for none. Retry is the same decision about the intent as it is now, for
	// which they are in its form; nil where it cannot be taken now.
	Words string
	Retry *retried
}

// retried is a decision that a person may take once more, about something else.
type retried struct {
	*pending
	Offer offer
}

// words returns the texts that the person typed, so that they are not lost.
func (d *decision) words() string {
	return strings.TrimSpace(strings.Join(append(slices.Clone(d.form["answer"]), d.form.Get("text")), "\n"))
}

// retry returns the same decision about the intent as it is now; nil if it has no words, or
// cannot be taken. An approval is none: it is taken where the person sees what they approve.
func (d *decision) retry(t *tokens.Token, now *document.Detail) *retried {
	p := pendingOf(t, now, d.form.Get("from"))
	for _, o := range p.Offers {
		if o.Name == d.name && o.Field != fieldNone && o.Field != fieldAmount && d.words() != "" {
			return &retried{p, o}
		}
	}
	return nil
}

// field is a field of a form.
type field struct{ Name, Value string }

// decide hands a decision on, if what its person saw is still so.
func (v *visit) decide() error {
	d, err := v.decision()
	if err != nil {
		return err
	}
	release, err := v.turn(forge.Key{Project: d.project, Intent: d.intent})
	if err != nil {
		return err
	}
	defer release()
	now, err := v.detail(d.project, d.intent)
	if err != nil {
		return v.undone(&d, err)
	}
	if list := changed(d.seen, now); len(list) > 0 {
		if own := d.own(v.token, now); own != nil {
			return v.done(own, now)
		}
		return v.show(http.StatusConflict, "stale", "Not done", stalePage{
			Title: "Not done: it has changed since you saw it", Changed: list, Since: d.since(now), Intent: now,
			Words: d.words(), Retry: d.retry(v.token, now),
		})
	}
	verb, content, err := d.content(now)
	if err != nil {
		return err
	}
	if !v.token.May(d.project, verb) {
		return &refusal{http.StatusForbidden, "Your roles in this project do not include this decision."}
	}
	var done struct {
		// Result is new, applied, known or accepted.
		Result string `json:"result"`
	}
	err = v.holder.Ask(v.r.Context(), api.Call{
		Method: http.MethodPost, Path: fmt.Sprintf("/api/v1/projects/%s/intents/%s/%s", d.project, d.intent, verb), Key: d.key(), Content: content,
	}, &done)
	if err != nil {
		return v.undone(&d, err)
	}
	switch done.Result {
	case "accepted":
		return v.show(http.StatusAccepted, "stale", "Stored", stalePage{
			Title: "Stored, and not decided yet", Why: "No runner has decided on it within five seconds. It will be: nothing needs to be sent again.", Intent: now,
		})
	case "known":
		return v.known(&d)
	}
	http.Redirect(v.w, v.r, d.back(), http.StatusSeeOther)
	return nil
}

// turn waits for the turn of an intent, as long as a page waits for an answer.
func (v *visit) turn(key forge.Key) (release func(), err error) {
	ctx, cancel := context.WithTimeout(v.r.Context(), askTime)
	defer cancel()
	if release, err = v.console.turns.Take(ctx, key); err != nil {
		return nil, &refusal{http.StatusServiceUnavailable, sentence(err.Error()) + " Nothing was done: go back, and send it again in a moment."}
	}
	return release, nil
}

// decision reads the form.
func (v *visit) decision() (d decision, err error) {
	if d.project, err = project(v.r.PathValue("project")); err != nil {
		return d, err
	}
	if d.intent, err = intent(v.r.PathValue("intent")); err != nil {
		return d, err
	}
	d.form = v.r.PostForm
	for name, values := range d.form {
		if len(values) > 1 && name != "answer" {
			return d, &refusal{http.StatusBadRequest, "The form has a field twice."}
		}
	}
	d.name = d.form.Get("decision")
	if d.seen, err = url.ParseQuery(d.form.Get("seen")); err != nil || len(d.seen) == 0 {
		return d, &refusal{http.StatusBadRequest, "The form does not say what you saw. Nothing was done."}
	}
	return d, nil
}

// content returns the verb and the content by which the API is asked.
func (d *decision) content(now *document.Detail) (tokens.Verb, any, error) {
	text := strings.ReplaceAll(strings.TrimSpace(d.form.Get("text")), "\r\n", "\n")
	if d.name == "answer" {
		return d.answer(now)
	}
	i := slices.IndexFunc(offers, func(o offer) bool { return o.Name == d.name && o.fits(now) })
	if i < 0 {
		return "", nil, &refusal{http.StatusBadRequest, "This cannot be decided about the intent as it is now. Nothing was done."}
	}
	if offers[i].Field == fieldNeeded && text == "" {
		return "", nil, &refusal{http.StatusBadRequest, offers[i].Ask + ": say it in words. Nothing was done."}
	}
	verb := offers[i].Verb
	switch d.name {
	case "approve": // the hash that was shown, and not the one that there is
		return verb, map[string]any{"plan": d.seen.Get("plan")}, nil
	case "changes": // of the hash that was shown, too
		return verb, map[string]any{"hash": d.seen.Get("plan"), "words": text, "task": d.form.Get("task")}, nil
	case "change":
		return verb, map[string]any{"body": now.Body + "\n\n" + text}, nil
	case "budget":
		text = strings.TrimPrefix(text, "$")
		usd, err := strconv.ParseFloat(text, 64)
		if text != "" && (err != nil || !(usd > 0) || usd > 1e6) {
			return "", nil, &refusal{http.StatusBadRequest, "The budget is not an amount of US dollars. Nothing was done."}
		}
		if text == "" {
			return verb, map[string]any{}, nil
		}
		return verb, map[string]any{"budget_usd": usd}, nil
	case "retry":
		return verb, map[string]any{"instructions": text}, nil
	case "resume":
		return verb, map[string]any{}, nil
	}
	return verb, map[string]any{"reason": text}, nil
}

// answer returns the content of an answer: a suggested one, or their own words.
func (d *decision) answer(now *document.Detail) (tokens.Verb, any, error) {
	index, err := strconv.Atoi(d.form.Get("index"))
	if err != nil || index < 0 || index >= len(now.Questions) || d.form.Get("question") != phrase.Mark(now.Questions[index].Question) {
		return "", nil, &refusal{http.StatusConflict, "This is not a question of the intent any more. Nothing was done."}
	}
	words := strings.ReplaceAll(strings.TrimSpace(d.form.Get("answer")), "\r\n", "\n")
	content := func(said string) (tokens.Verb, any, error) {
		return tokens.Answer, map[string]any{"index": index, "question": now.Questions[index].Question, "answer": said}, nil
	}
	switch verdict := d.form.Get("verdict"); {
	case verdict == "":
	case verdict == "approve" && words == "":
		return content("approve")
	case verdict == "approve":
		return "", nil, &refusal{http.StatusBadRequest, "There are words to its author, and they get none of a change that is approved. Nothing was done."}
	case verdict == "changes" && words == "":
		return "", nil, &refusal{http.StatusBadRequest, "What should be different: say it in words. Nothing was done."}
	case verdict == "changes": // the question names the commit, and is the one that was shown
		return tokens.Change, map[string]any{"hash": disputed(now, index), "words": words}, nil
	case verdict == "reject" && words == "":
		return content("reject")
	case verdict == "reject":
		return content("reject: " + words)
	}
	answers := slices.DeleteFunc(slices.Clone(d.form["answer"]), func(s string) bool { return strings.TrimSpace(s) == "" })
	if len(answers) == 0 {
		return "", nil, &refusal{http.StatusBadRequest, "The answer is empty. Nothing was done."}
	}
	// A button with a suggested answer stands behind the field in the form, so it is the last one.
	return content(strings.ReplaceAll(strings.TrimSpace(answers[len(answers)-1]), "\r\n", "\n"))
}

// key returns the person's own name of the decision. The forms of a page share theirs, and are
// told apart by what they decide.
func (d *decision) key() string {
	return strings.Join([]string{d.form.Get("key"), d.name, d.form.Get("index")}, "-")
}

// since returns the decisions about an intent that the person has not seen.
func (d *decision) since(now *document.Detail) (list []document.Decided) {
	at, err := time.Parse(time.RFC3339Nano, d.seen.Get("at"))
	if err != nil {
		return nil
	}
	for _, one := range now.Decisions {
		if one.At.After(at) {
			list = append(list, one)
		}
	}
	return list
}

// own returns the decision of the form, if its person has taken it since they
// saw the page: by the same form, which was sent twice or whose answer was
// lost, or by another one. It is nil if the journal has none.
func (d *decision) own(t *tokens.Token, now *document.Detail) *document.Decided {
	name, _ := t.Holder()
	what := map[string]string{"change": "edit", "budget": "retry", "changes": "request_changes"}[d.name]
	if what == "" {
		what = d.name
	}
	text := strings.ReplaceAll(strings.TrimSpace(d.form.Get("text")), "\r\n", "\n")
	for _, one := range slices.Backward(d.since(now)) {
		same := one.By == name && one.What == what
		switch d.name {
		case "approve":
			same = same && one.Plan == d.seen.Get("plan")
		case "answer":
			same = same && phrase.Mark(one.Question) == d.form.Get("question")
		case "change":
			same = same && strings.HasSuffix(now.Body, "\n\n"+text)
		case "budget":
			amount, err := strconv.ParseFloat(strings.TrimPrefix(text, "$"), 64)
			same = same && (text == "" && one.Budget == 0 || err == nil && amount == one.Budget)
		default:
			same = same && one.Reason == text
		}
		if same {
			return &one
		}
	}
	return nil
}

// done says that a decision had been taken by the person who sends it once more.
func (v *visit) done(own *document.Decided, now *document.Detail) error {
	return v.show(http.StatusOK, "stale", "Done", stalePage{
		Title: "It was done", Why: "You decided this before, and a decision counts once. The journal has:", Since: []document.Decided{*own}, Intent: now,
	})
}

// known answers a decision that had been taken: by the same form, or by another person.
func (v *visit) known(d *decision) error {
	now, err := v.detail(d.project, d.intent)
	if err != nil {
		return err
	}
	if own := d.own(v.token, now); own != nil {
		return v.done(own, now)
	}
	return v.show(http.StatusConflict, "stale", "Decided already", stalePage{
		Title: "It had been decided already", Why: "What you sent was not counted again.", Since: d.since(now), Intent: now,
		Words: d.words(), Retry: d.retry(v.token, now),
	})
}

// undone answers a decision that the API refused, or of which nothing is known.
func (v *visit) undone(d *decision, err error) error {
	page := stalePage{Title: "Not done"}
	status := statusOf(err)
	switch {
	case status == http.StatusUnauthorized:
		return &signedOut{session.ErrRemoved}
	case status >= http.StatusInternalServerError || status == 0:
		status = http.StatusServiceUnavailable
		page.Title = "It is not known whether this was done"
		page.Why = "The answer did not come. Send it again: it counts once, however often it is sent."
		if p, ok := asProblem(err); ok && strings.Contains(p.Detail, "nothing was done") {
			page.Title, page.Why = "Not done", sentence(p.Detail)+" Send it again in a moment."
		}
		page.Path = v.r.URL.Path
		for name, values := range d.form {
			for _, value := range values {
				page.Again = append(page.Again, field{name, value})
			}
		}
	default:
		if p, ok := asProblem(err); ok {
			page.Why = inWords(p)
		}
		if now, err := v.detail(d.project, d.intent); err == nil {
			if own := d.own(v.token, now); own != nil {
				return v.done(own, now)
			}
			page.Intent, page.Since, page.Changed = now, d.since(now), changed(d.seen, now)
			page.Words, page.Retry = d.words(), d.retry(v.token, now)
		}
	}
	return v.show(status, "stale", page.Title, page)
}

// back returns where a person goes on: the page on which they decided.
func (d *decision) back() string {
	if d.form.Get("from") == "change" {
		return intentPath(d.project, d.intent)
	}
	return Base + "inbox?" + url.Values{"project": {string(d.project)}, "intent": {string(d.intent)}}.Encode()
}
