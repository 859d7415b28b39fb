package look

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/requests"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
	"github.com/pfl-forge/pfl-forge/services/gateway/intake"
)

// obey carries out the commands of one comment, and answers with a reaction. What is refused is told in our comment, in one line.
func (w *Watcher) obey(ctx context.Context, s *seen, c *forges.Comment) error {
	if !strings.Contains(c.Body, "/forge") || c.Author.ID == w.self.ID {
		return nil // most comments: the forge is not asked about their authors
	}
	// Whether a person wrote it, and what they may, the forge says now and not in the comment.
	author, err := w.account(ctx, s, c.Author)
	if err != nil {
		return err
	}
	list := intake.Commands(intake.Said{Author: author, Body: c.Body, Edited: c.Edited()}, w.self.ID)
	if len(list) == 0 {
		return nil
	}
	reaction := forges.Done
	// One reaction stands for the comment. The reason of the last command that was refused is in our comment.
	for i := range list {
		why, err := w.carryOut(ctx, s, c, author, &list[i], i)
		if err != nil {
			return err
		}
		if why != "" {
			reaction = forges.Refused
		}
		if why != "" && s.mark != (mark{}) {
			s.mark.Note = why
		}
	}
	return w.cfg.Forge.React(ctx, s.Repository.Name, forges.OfIssue(s.Number), c.ID, reaction)
}

// carryOut carries one command out, or returns the reason why not, as a sentence for its author. Whoever acts is asked for their
// permission at this moment, and has to be known as a person: what they decide, the journal has in their name.
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
	person := w.cfg.People[author.ID]
	if person == "" {
		return "no person is known for this account", nil
	}
	key, err := s.mark.key()
	if err != nil {
		return "", err
	}
	caller := w.caller(author, fmt.Sprintf("%s#%d comment %d", s.Repository.Name, s.Number, c.ID))
	caller.Name, caller.Person = person, true
	// The id of the wish follows from the comment: read again by whomever, it is known.
	id := fmt.Sprintf("%s/%d/comment/%d/%d", w.cfg.Name, s.Repository.ID, c.ID, i+1)
	done, err := w.cfg.Submissions.AskFor(ctx, caller, key, id, wish(cmd))
	if refused, ok := errors.AsType[*requests.RequestError](err); ok && refused.Code < http.StatusInternalServerError {
		return refused.Error(), nil
	}
	if err == nil && done.Result == "accepted" {
		err = errUndecided
	}
	if err == nil {
		s.mark.Note = ""
	}
	return "", err
}

// wish returns the event that a command stands for.
func wish(cmd *intake.Command) forge.Message {
	switch cmd.Verb {
	case intake.Approve:
		return &forge.Approve{Plan: cmd.Hash}
	case intake.Changes:
		return &forge.RequestChanges{Hash: cmd.Hash, Words: cmd.Text}
	case intake.Reject:
		return &forge.Reject{Reason: cmd.Text}
	case intake.Answer:
		return &forge.Answer{Index: cmd.Question - 1, Answer: cmd.Text}
	case intake.Retry:
		return &forge.Retry{Instructions: cmd.Text}
	case intake.Adopt:
		return &forge.Retry{Adopt: cmd.Hash}
	case intake.Cancel:
		return &forge.Cancel{Reason: "by a comment"}
	case intake.Pause:
		return &forge.Pause{Reason: "by a comment"}
	case intake.Resume:
		return &forge.Resume{}
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
	case cmd.Verb == intake.Explain && s.mark != (mark{}):
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
	s.mark.Own = s.unheard
	if err := w.submit(ctx, s, &t, &d, s.mark.Count+1, cmd.Text); err != nil {
		return "", err
	}
	if s.mark.Intent == before {
		return s.mark.Note, nil
	}
	return "", nil
}
