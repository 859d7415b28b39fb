package look

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/requests"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
	"github.com/pfl-forge/pfl-forge/services/gateway/intake"
)

// seen is an issue as one look finds it.
type seen struct {
	forges.Issue

	comments []forges.Comment
	// status is our comment; its ID is 0 if there is none yet.
	status forges.Comment
	mark   mark
	// intent is the issue's, as the runner shows it; nil if there is none.
	intent *document.Detail
	// delivered has the texts and edits that deliveries tell; nil if none came.
	delivered *intake.Delivered
	// later says that the text of the issue is not the one that is worked on; empty if it is.
	later string
	// due are the reactions that are due, in the order of their comments.
	due []answer
	// own are the repository's rules; nil if it has none. Why those that it has
	// do not count, ignored says.
	own     *intake.Rules
	ignored string
}

// look asks the forge for an issue and does all that follows. Everything in it
// can be done again: it is called once more when it was cut off anywhere, and
// then finds that the intent is known, the wish decided and the comment there.
func (w *Watcher) look(ctx context.Context, key issueKey) error {
	s := &seen{delivered: w.delivered[key]}
	var err error
	if s.Issue, err = w.cfg.Forge.Issue(ctx, key.repository, key.number); err != nil {
		return err
	}
	if s.comments, err = w.cfg.Forge.Comments(ctx, key.repository, forges.OfIssue(key.number), time.Time{}); err != nil {
		return err
	}
	if err := w.remember(ctx, s); err != nil {
		return err
	}
	if s.Open && s.mark.Intent == "" {
		if err := w.trigger(ctx, s); err != nil {
			return err
		}
	}
	if err := w.commands(ctx, s); err != nil {
		return err
	}
	if s.mark.isZero() {
		return w.answers.give(ctx, key, s) // nothing became of it, and nothing was said
	}
	if err := w.show(ctx, s); err != nil {
		return err
	}
	if err := w.compare(ctx, s); err != nil {
		return err
	}
	if err := w.hear(ctx, s); err != nil {
		return err
	}
	if err := w.say(ctx, key, s); err != nil {
		return err
	}
	if err := w.answers.give(ctx, key, s); err != nil || !s.isDone() || s.mark.Closed == s.mark.Count {
		return err
	}
	// The summary is there before the issue is closed, and that it was is
	// remembered behind it: what is cut off in between is done again.
	if s.Open {
		if err := w.cfg.Forge.CloseIssue(ctx, key.repository, key.number); err != nil {
			return err
		}
	}
	s.mark.Closed = s.mark.Count
	return w.say(ctx, key, s)
}

// isDone reports whether the newest intent of an issue is done. One that failed
// or was cancelled leaves its issue to people.
func (s *seen) isDone() bool { return s.intent != nil && s.intent.Status == forge.StatusDone }

// intentID returns the id of the n-th intent of an issue.
func (w *Watcher) intentID(i *forges.Issue, n int) (forge.IntentID, error) {
	event, err := intake.EventID(w.cfg.Name, i.Repository.ID, i.Number, n)
	if err != nil {
		return "", err
	}
	return forge.NewDerivedID(fmt.Sprintf("issue-%d", i.Number), w.cfg.Name, event), nil
}

// errUndecided says that a runner has stored what it was asked, and not decided
// it: the next look asks again, by the same id.
var errUndecided = errors.New("no runner has decided it yet")

// trigger submits an intent for the issue if the rules say so. Submitting again
// is known by the event id.
func (w *Watcher) trigger(ctx context.Context, s *seen) error {
	t, err := w.facts(ctx, s)
	if err != nil {
		return err
	}
	d, err := w.decide(ctx, s, &t, 1)
	if err != nil || d.Do == intake.Ignore {
		return err
	}
	s.mark.Note, s.mark.Own = d.Refused, s.ignored
	if d.Refused != "" {
		return nil
	}
	return w.submit(ctx, s, &t, &d, 1, "")
}

// facts asks for the rules of the repository, for the edits of the text, and
// for the permission and the teams of everybody whom a rule may ask for.
func (w *Watcher) facts(ctx context.Context, s *seen) (intake.Trigger, error) {
	t := intake.Trigger{
		Forge: w.cfg.Name, Repository: s.Repository.Name, RepositoryID: s.Repository.ID, Number: s.Number, Event: intake.Issue,
		Title: s.Title, Body: s.Body,
	}
	err := w.readOwn(ctx, s)
	if err != nil {
		return t, err
	}
	if t.Author, err = w.asker(ctx, s, s.Author); err != nil {
		return t, err
	}
	for _, l := range s.Labels {
		if l.By, err = w.asker(ctx, s, l.By); err != nil {
			return t, err
		}
		t.Labels = append(t.Labels, l)
	}
	t.Edits, err = w.edits(ctx, s)
	return t, err
}

// asker is account with the teams of the account as well.
func (w *Watcher) asker(ctx context.Context, s *seen, a intake.Account) (intake.Account, error) {
	got, err := w.account(ctx, s, a)
	if err == nil {
		err = w.join(ctx, s, &got)
	}
	return got, err
}

// account returns an account with its permission as it is now. One that is gone
// may nothing; one whose name another account has by now is not that one.
func (w *Watcher) account(ctx context.Context, s *seen, a intake.Account) (intake.Account, error) {
	if a.ID <= 0 || a.Login == "" {
		return a, nil
	}
	got, err := w.cfg.Forge.Account(ctx, s.Repository.Name, a.Login)
	switch {
	case errors.Is(err, forges.ErrNotFound), err == nil && got.ID != a.ID:
		return intake.Account{ID: a.ID, Login: a.Login}, nil
	case err != nil:
		return a, err
	}
	return got, nil
}

// submit counts the n-th intent of the issue for limits, and submits it. A
// refusal is noted in the mark, for our comment; an error is tried again.
func (w *Watcher) submit(ctx context.Context, s *seen, t *intake.Trigger, d *intake.Decision, n int, recipe string) error {
	// The id of the intent follows from the event: submitted again by whomever, it is known.
	event, err := intake.EventID(w.cfg.Name, s.Repository.ID, s.Number, n)
	if err != nil {
		return err
	}
	caller := w.cfg.caller(d.Asker, fmt.Sprintf("%s#%d text %s", s.Repository.Name, s.Number, textOf(&s.Issue)))
	if d.As == intake.AsPerson {
		if caller.Name, s.mark.Note = w.people.asks(d.Asker.ID, d.Project); caller.Name == "" {
			return nil
		}
		caller.Person = true
	}
	id, err := w.intentID(&s.Issue, n)
	if err != nil {
		return err
	}
	// Whoever is killed behind this has counted one too many at most: the next
	// look finds that it is counted.
	if err := w.count(ctx, s, t, n, d); err != nil {
		return err
	}
	if d.Refused != "" {
		s.mark.Note = d.Refused
		return nil
	}
	in := forge.Intent{
		ID: id, Project: d.Project,
		Settings: forge.Settings{
			Title: titleOf(&s.Issue), Body: s.Body, Type: d.Type, Risk: d.Risk, Agent: d.Agent,
			BudgetUSD: d.BudgetUSD, Recipe: cmp.Or(d.Recipe, recipe), Attributes: forge.Attributes{Priority: d.Priority},
		},
		Source: forge.SourceSystem,
		Origin: forge.Origin{System: w.cfg.Name, EventID: event, Actor: d.Asker.Login},
	}
	if caller.Person {
		in.Source = forge.SourceHuman
	}
	done, err := w.cfg.Submissions.SubmitFor(ctx, caller, in)
	if refused, ok := errors.AsType[*requests.RequestError](err); ok && refused.Code < http.StatusInternalServerError {
		s.mark.Note = refused.Error()
		return nil
	}
	if err != nil {
		return err
	}
	if done.Result == "accepted" {
		return errUndecided
	}
	s.mark.Intent, s.mark.Project, s.mark.Count, s.mark.Note = string(in.ID), string(in.Project), n, ""
	s.mark.Text, s.mark.Edited = textOf(&s.Issue), d.Edited
	return nil
}

// caller returns who asks, as the journal is to remember it.
func (c *Config) caller(a intake.Account, ref string) *requests.Caller {
	return &requests.Caller{Name: c.Name, Gateway: c.Gateway, Account: fmt.Sprintf("%s account %d %s", c.Name, a.ID, a.Login), Ref: ref}
}

// show asks the runner how the intent is. One that is stored and not decided yet is not there.
func (w *Watcher) show(ctx context.Context, s *seen) error {
	if s.mark.Intent == "" {
		return nil
	}
	key, err := s.mark.key()
	if err != nil {
		return err
	}
	data, err := w.cfg.Submissions.Show(ctx, key, w.cfg.Gateway, document.Page{})
	if refused, ok := errors.AsType[*requests.RequestError](err); ok && refused.Code == http.StatusNotFound {
		return nil // it is stored, and not decided yet
	}
	if err != nil {
		return err
	}
	s.intent = &document.Detail{}
	return json.Unmarshal(data, s.intent)
}

// say brings our comment up to date: the one that is there, or a new one. It is
// written at most every so often.
func (w *Watcher) say(ctx context.Context, key issueKey, s *seen) error {
	text := w.text(s)
	if text == s.status.Body {
		return nil
	}
	// Forges count what is written, and people are told of each edit in some of
	// them. Which comments were read is remembered at once: a command that was
	// refused would be carried out later.
	before, _ := readMark(s.status.Body)
	if since := time.Since(w.edited[key]); since < w.cfg.Seldom && s.status.ID != 0 && before.Last == s.mark.Last && before.Closed == s.mark.Closed {
		w.due[key] = time.Now().Add(w.cfg.Seldom - since)
		return nil
	}
	w.edited[key] = time.Now()
	s.mark.Due = slices.DeleteFunc(s.mark.Due, func(o answer) bool { return o.Comment <= w.answers.given[key] })
	text = w.text(s)
	var err error
	if s.status.ID != 0 {
		err = w.cfg.Forge.Edit(ctx, key.repository, forges.OfIssue(key.number), s.status.ID, text)
	} else {
		s.status, err = w.cfg.Forge.Say(ctx, key.repository, forges.OfIssue(key.number), text)
	}
	if err == nil {
		s.status.Body = text
	}
	return err
}
