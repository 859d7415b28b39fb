package look

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/requests"
	"github.com/pfl-forge/pfl-forge/internal/term"
	"github.com/pfl-forge/pfl-forge/messages"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/heard"
	"github.com/pfl-forge/pfl-forge/services/gateway/intake"
)

// maxEditors bounds the accounts that are asked for because they edited a text.
// Of the others nothing is known, so that a person is asked.
const maxEditors = 20

// textDigits is how much of the hash of a text names it.
const textDigits = 12

// titleOf returns the title of the intent of an issue.
func titleOf(i *forges.Issue) string { return cmp.Or(i.Title, fmt.Sprintf("Issue %d", i.Number)) }

// textOf returns the name of the text that an issue has now: the beginning of
// its hash, which tells it from others for people and is the runner's.
func textOf(i *forges.Issue) string { return messages.HashText(titleOf(i), i.Body)[:textDigits] }

// edits returns the edits of the text that the forge knows of, or that follow
// from deliveries, with what their authors may do now.
func (w *Watcher) edits(ctx context.Context, s *seen) ([]intake.Edit, error) {
	known, err := w.cfg.Forge.Edits(ctx, s.Repository.Name, s.Number)
	if err != nil {
		return nil, err
	}
	list := s.delivered.Edits(known, messages.HashText(s.Title, s.Body))
	accounts := map[int64]intake.Account{}
	for i := range slices.Backward(list) { // the newest first: the older ones are less likely to count
		by := &list[i].By
		if _, asked := accounts[by.ID]; !asked && by.ID > 0 && len(accounts) < maxEditors {
			if accounts[by.ID], err = w.asker(ctx, s, *by); err != nil {
				return nil, err
			}
		}
		if a, ok := accounts[by.ID]; ok {
			*by = a
		}
	}
	return list, nil
}

// compare notes that the text of the issue is not the one that is worked on, with when it was
// edited last if the forge tells; and has the runner remember it, for those who look elsewhere.
func (w *Watcher) compare(ctx context.Context, s *seen) error {
	taken := s.mark.Text
	if s.intent != nil && s.intent.Text != nil { // the mark is in a comment, which people can edit
		taken = s.intent.Text.Taken
	}
	if s.intent == nil || s.intent.Status.Ended() || taken == "" {
		return nil
	}
	if err := retell(ctx, &w.cfg, w.self, s); err != nil || taken == textOf(&s.Issue) {
		return err
	}
	when := ""
	edits, err := w.cfg.Forge.Edits(ctx, s.Repository.Name, s.Number)
	if _, parked := errors.AsType[*forges.ParkedError](err); parked || ctx.Err() != nil {
		return err
	}
	if err == nil && len(edits) > 0 { // without it, the line has no time
		last := slices.MaxFunc(edits, func(a, b intake.Edit) int { return a.At.Compare(b.At) })
		when = " at " + last.At.UTC().Format(time.RFC3339)
	}
	s.later = fmt.Sprintf("The text of this issue was edited%s, after this was asked for. What is worked on is the text of hash `%s`, and not the one that is "+
		"here now, of hash `%s`. `/forge cancel` ends that, and `/forge run` asks for the new one.", when, taken, textOf(&s.Issue))
	return nil
}

// hear tells the runner that others commented on the issue while its intent is under way.
func (w *Watcher) hear(ctx context.Context, s *seen) error {
	if s.intent == nil {
		return nil
	}
	t := heard.Teller{Name: w.cfg.Name, Gateway: w.cfg.Gateway, Submissions: w.cfg.Submissions, Log: w.cfg.Log}
	return t.Tell(ctx, s.intent, w.self, heard.Place{Repository: s.Repository.Name, Topic: forges.OfIssue(s.Number)}, s.laterComments(w.self.ID))
}

// retell submits the event of the intent once more, with the text that the issue has now,
// unless the runner knows it: it changes nothing of what is worked on, and the runner says so
// to everybody who looks. It is told again by each look until it is known, whatever was lost.
func retell(ctx context.Context, cfg *Config, self intake.Account, s *seen) error {
	known := s.intent.Text
	if known == nil {
		return nil // the runner is of a former version
	}
	in := forge.Intent{
		ID: s.intent.Intent, Project: s.intent.Project, Settings: forge.Settings{Title: titleOf(&s.Issue), Body: s.Body},
		Source: forge.SourceSystem, Origin: forge.Origin(s.intent.Origin),
	}
	if in.Validate() != nil { // a text that cannot be submitted is told by what is left of it
		in.Title = term.Short(in.Title, forge.MaxTitle)
		in.Body = cmp.Or(strings.TrimSpace(clip(term.Sanitize(in.Body), forge.MaxBody)), "(no text)")
	}
	now := messages.HashText(in.Title, in.Body)[:textDigits]
	if now == known.Taken {
		now = ""
	}
	if now == known.Later {
		return nil
	}
	ref := fmt.Sprintf("%s#%d text %s", s.Repository.Name, s.Number, textOf(&s.Issue))
	_, err := cfg.Submissions.SubmitFor(ctx, cfg.caller(self, ref), in)
	if refused, ok := errors.AsType[*requests.RequestError](err); ok && refused.Code < http.StatusInternalServerError {
		cfg.Log.WarnContext(ctx, "cannot tell the runner that an issue was edited; its comment says so", "issue",
			fmt.Sprintf("%s#%d", s.Repository.Name, s.Number), "error", err)
		return nil
	}
	return err
}

// clip returns the beginning of a text, of at most so many bytes.
func clip(s string, most int) string {
	return strings.ToValidUTF8(s[:min(len(s), most)], "")
}
