package look

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
)

// Commands are answered by a reaction to their comment, after our comment remembers that they were
// read. On GitLab a reaction makes a comment look edited, and an edited one commands nothing: with
// the reaction first, whoever is killed between the two forgets why a command was refused.

// answer is a reaction that is due to a comment.
type answer struct {
	Comment  int64           `json:"comment"`
	Reaction forges.Reaction `json:"reaction"`
}

// maxDue bounds the answers that a mark remembers. Those of more commands at
// once are lost if the gateway is killed before it has given them.
const maxDue = 20

// commands carries out the commands in comments that were not read yet, each comment once.
func (w *Watcher) commands(ctx context.Context, s *seen) error {
	slices.SortFunc(s.comments, func(a, b forges.Comment) int { return cmp.Compare(a.ID, b.ID) })
	read := len(s.mark.Due)
	s.due = slices.Clone(s.mark.Due)
	for _, c := range s.comments {
		// Ids of comments grow, so that one number says which were read.
		if c.ID <= s.mark.Last || c.ID == s.status.ID {
			continue
		}
		reaction, err := w.obey(ctx, s, &c)
		if err != nil {
			return err
		}
		if reaction != "" {
			s.due = append(s.due, answer{c.ID, reaction})
		}
		// Without an intent there is no comment of ours to remember it in. What
		// was refused is refused again.
		if !s.mark.isZero() {
			s.mark.Last = c.ID
		}
	}
	if len(s.due) > read && !s.mark.isZero() {
		s.mark.Due = s.due[max(0, len(s.due)-maxDue):]
	}
	return nil
}

// answers gives the reactions.
type answers struct {
	forge forges.Forge
	// given is the last comment on an issue whose reaction is there.
	given map[issueKey]int64
}

// give gives the answers that are due. One that is there already is no other one, at any forge.
func (a *answers) give(ctx context.Context, key issueKey, s *seen) error {
	for _, o := range s.due {
		there := slices.ContainsFunc(s.comments, func(c forges.Comment) bool { return c.ID == o.Comment })
		if !there || o.Comment <= a.given[key] || o.Reaction != forges.Done && o.Reaction != forges.Refused {
			continue // the mark may have been written by another one
		}
		err := a.forge.React(ctx, key.repository, forges.OfIssue(key.number), o.Comment, o.Reaction)
		if err != nil && !errors.Is(err, forges.ErrNotFound) {
			return err
		}
		a.given[key] = o.Comment
	}
	return nil
}
