package look

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/pfl-forge/pfl-forge/bus/requests"
	"github.com/pfl-forge/pfl-forge/services/gateway/api"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
	"github.com/pfl-forge/pfl-forge/services/gateway/intake"
	"github.com/pfl-forge/pfl-forge/services/gateway/tokens"
)

// obey carries out the commands of one comment, and returns the reaction that answers
// it; empty if there are none. What is refused is told in our comment, in one line.
func (w *Watcher) obey(ctx context.Context, s *seen, c *forges.Comment) (forges.Reaction, error) {
	if !strings.Contains(c.Body, "/forge") || c.Author.ID == w.self.ID {
		return "", nil // most comments: the forge is not asked about their authors
	}
	// Whether a person wrote it, and what they may, the forge says now and not in the comment.
	author, err := w.account(ctx, s, c.Author)
	if err != nil {
		return "", err
	}
	list := intake.Commands(intake.Said{Author: author, Body: c.Body, Edited: c.Edited()}, w.self.ID)
	if len(list) == 0 {
		return "", nil
	}
	reaction := forges.Done
	// One reaction stands for the comment. The reason of the last command that
	// was refused is in our comment.
	for i := range list {
		why, err := w.carryOut(ctx, s, c, author, &list[i], i)
		if err != nil {
			return "", err
		}
		if why != "" {
			reaction = forges.Refused
		}
		if why != "" && !s.mark.isZero() {
			s.mark.Note = why
		}
	}
	return reaction, nil
}

// carryOut carries one command out, or returns the reason why not, as a sentence for its author.
// Whoever acts is asked for their permission at this moment, and has to be known as a person: what
// they decide, the journal has in their name. It is the API that is asked, in the name of their
// entry of the file of tokens: so a comment needs the role that the same request by HTTP needs.
func (w *Watcher) carryOut(ctx context.Context, s *seen, c *forges.Comment, author intake.Account, cmd *intake.Command, i int) (string, error) {
	switch {
	case cmd.Wrong != "":
		return cmd.Wrong, nil
	case cmd.Verb == intake.Run, cmd.Verb == intake.Explain:
		return w.run(ctx, s, c, author, cmd)
	case cmd.Verb == intake.Status:
		s.mark.Note = ""
		return "", nil
	case s.mark.Intent == "":
		return "this issue has no intent", nil
	case !author.Permission.Includes(intake.Write):
		return "this needs the right to write in the repository", nil
	}
	key, err := s.mark.key()
	if err != nil {
		return "", err
	}
	caller := w.caller(author, fmt.Sprintf("%s#%d comment %d", s.Repository.Name, s.Number, c.ID))
	holder := w.cfg.API.ForAccount(func() (*tokens.Token, error) { return w.people.by(author.ID) }, caller.Account, caller.Ref)
	verb, content := wish(cmd)
	var done requests.Accepted
	err = holder.Ask(ctx, api.Call{
		Method: http.MethodPost, Path: fmt.Sprintf("/api/v1/projects/%s/intents/%s/%s", key.Project, key.Intent, verb), Content: content,
		// The id of the wish follows from the comment: read again by whomever, it is known.
		Key: fmt.Sprintf("%s/%d/comment/%d/%d", w.cfg.Name, s.Repository.ID, c.ID, i+1),
	}, &done)
	if why, ok := refusal(err); ok {
		return why, nil
	}
	if err == nil && done.Result == "accepted" {
		err = errUndecided
	}
	if err == nil {
		s.mark.Note = ""
	}
	return "", err
}

// refusal returns why the API refused a request for good, in one line; false
// for one that may yet be done.
func refusal(err error) (why string, ok bool) {
	p, ok := errors.AsType[*api.Problem](err)
	if !ok || !p.IsFinal() {
		return "", false
	}
	if len(p.Errors) == 0 {
		return p.Detail, true
	}
	return cmp.Or(p.Errors[0].Field, "request") + ": " + p.Errors[0].Reason, true
}

// wish returns the request that a command stands for: its verb, and its content.
func wish(cmd *intake.Command) (tokens.Verb, map[string]any) {
	switch cmd.Verb {
	case intake.Approve:
		return tokens.Approve, map[string]any{"plan": cmd.Hash}
	case intake.Changes:
		return tokens.Change, map[string]any{"hash": cmd.Hash, "words": cmd.Text}
	case intake.Reject:
		return tokens.Reject, map[string]any{"reason": cmd.Text}
	case intake.Answer:
		return tokens.Answer, map[string]any{"index": cmd.Question - 1, "answer": cmd.Text}
	case intake.Retry:
		return tokens.Retry, map[string]any{"instructions": cmd.Text}
	case intake.Adopt:
		return tokens.Retry, map[string]any{"adopt": cmd.Hash}
	case intake.Cancel:
		return tokens.Cancel, map[string]any{"reason": "by a comment"}
	case intake.Pause:
		return tokens.Pause, map[string]any{"reason": "by a comment"}
	case intake.Resume:
		return tokens.Resume, map[string]any{}
	default:
		panic("no wish is " + string(cmd.Verb))
	}
}

// run triggers the issue once more, or explains what would become of that.
func (w *Watcher) run(ctx context.Context, s *seen, c *forges.Comment, author intake.Account, cmd *intake.Command) (string, error) {
	t, err := w.facts(ctx, s)
	if err != nil {
		return "", err
	}
	if err := w.join(ctx, s, &author); err != nil {
		return "", err
	}
	t.Event, t.Commander, t.Command, t.Commanded = intake.Comment, author, intake.Run, c.Created
	d, err := w.decide(ctx, s, &t, s.mark.Count+1)
	switch {
	case err != nil && (cmd.Verb != intake.Explain || !d.Uncounted):
		return "", err
	case cmd.Verb == intake.Explain && !s.mark.isZero():
		s.mark.Note = s.explain(&d)
		return "", nil
	case cmd.Verb == intake.Explain:
		return "this issue has no intent", nil
	case d.Do == intake.Ignore:
		return "no rule lets this command in", nil
	case d.Refused != "":
		return d.Refused, nil
	case !s.Open:
		return "the issue is closed", nil
	}
	if s.mark.Intent != "" {
		if err := w.show(ctx, s); err != nil {
			return "", err
		}
		if s.intent == nil || !s.intent.Status.Ended() {
			return "the intent of this issue is under way", nil
		}
	}
	// The count is of this look: two looks at once would submit the same event.
	before := s.mark.Intent
	s.mark.Own = s.ignored
	if err := w.submit(ctx, s, &t, &d, s.mark.Count+1, cmd.Text); err != nil {
		return "", err
	}
	if s.mark.Intent == before {
		return s.mark.Note, nil
	}
	return "", nil
}
