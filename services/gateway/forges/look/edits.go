package look

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
	"github.com/pfl-forge/pfl-forge/services/gateway/intake"
)

// maxEditors bounds the accounts that are asked for because they edited a text.
// Of the others nothing is known, so that a person is asked.
const maxEditors = 20

// textOf returns the name of the text that an issue has now: the beginning of
// its hash, which tells it from others for people.
func textOf(i *forges.Issue) string { return intake.Hash(i.Title, i.Body)[:12] }

// edits returns the edits of the text that the forge knows of, or that follow
// from deliveries, with what their authors may do now.
func (w *Watcher) edits(ctx context.Context, s *seen) ([]intake.Edit, error) {
	known, err := w.cfg.Forge.Edits(ctx, s.Repository.Name, s.Number)
	if err != nil {
		return nil, err
	}
	list := s.delivered.Edits(known, intake.Hash(s.Title, s.Body))
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

// compare notes that the text of the issue is not the one that is worked on,
// with when it was edited last if the forge tells.
func (w *Watcher) compare(ctx context.Context, s *seen) error {
	if s.intent == nil || s.intent.Status.Ended() || s.mark.Text == "" || s.mark.Text == textOf(&s.Issue) {
		return nil
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
		"here now, of hash `%s`. `/forge cancel` ends that, and `/forge run` asks for the new one.", when, s.mark.Text, textOf(&s.Issue))
	return nil
}
