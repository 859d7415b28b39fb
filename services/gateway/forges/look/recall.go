package look

// What another one made of our comment is told from what we wrote by the sum in its mark. A
// mark without a sum, and a comment of our account that says how an intent of the issue is and
// has no mark, are edited as well: otherwise whoever takes out the sum would have taken out
// the check. There is no secret in the sum, since no gateway has one that stays: a token is
// replaced, and a mark has to be read for as long as its issue is open. So it finds edits by
// hand and copies of other comments, and the rest is bounded by what a mark can say at all:
//
//	another intent       is none that the issue leads to, and the comment does not count
//	a former intent      is shown again; its id is known to the runner, so that nothing is submitted twice
//	fewer read comments  commands are carried out again, whose wishes are known by their comments; a refused one may not be refused now
//	more read comments   commands are not read, as if they had been deleted

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/requests"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
)

// remember finds our comment, and takes from its mark what is known of the issue. Everyone
// can write a mark, and whoever may write in the repository can edit our comment: one that
// is not as it was written is left alone, and a new one is made from what the runner knows.
func (w *Watcher) remember(ctx context.Context, s *seen) error {
	edited := false
	for _, c := range s.comments {
		if c.Author.ID != w.self.ID || !isStatus(&s.Issue, c.Body) {
			continue
		}
		m, ok := readMark(c.Body)
		if !ok || m.Sum != sumOf(&s.Issue, c.Body) || !w.isOurs(&s.Issue, &m) {
			edited = true
			continue
		}
		// The settings were changed, and not the comment: a new one would have
		// the issue done once more, by another project.
		if m.Intent != "" && !slices.Contains(w.cfg.Projects, forge.ProjectID(m.Project)) {
			return fmt.Errorf("our comment %d names intent %.100q, and no rule is for its project %.100q: name that in one again, or remove the comment",
				c.ID, m.Intent, m.Project)
		}
		m.Sum = ""
		s.status, s.mark = c, m
		return nil
	}
	if edited {
		return w.recall(ctx, s)
	}
	return nil
}

// isStatus reports whether a comment of our account is, or was, the one that says how
// the intent of an issue is. Other programs may write in the name of the account.
func isStatus(i *forges.Issue, body string) bool {
	return strings.Contains(body, markBegin) || strings.Contains(body, fmt.Sprintf("intent `issue-%d-", i.Number))
}

// isOurs reports whether a mark names the intent that its issue leads to, or
// none. Whoever may write in the repository can edit our comment, and would
// have another intent shown there and decided on.
func (w *Watcher) isOurs(i *forges.Issue, m *mark) bool {
	if m.Intent == "" {
		return true
	}
	id, err := w.intentID(i, m.Count)
	return err == nil && m.Intent == string(id)
}

// sumOf returns the sum of a comment on an issue, that in its mark left out.
// Forges differ in ends of lines and of texts. Whoever knows how it is made can
// make one: what a mark says is never more than a hint for that reason.
func sumOf(i *forges.Issue, body string) string {
	m, _ := readMark(body)
	m.Sum = ""
	_, rest, _ := strings.Cut(strings.ReplaceAll(body, "\r\n", "\n"), markEnd)
	sum := sha256.Sum256(fmt.Appendf(nil, "%d/%d %s%s", i.Repository.ID, i.Number, &m, strings.TrimSpace(rest)))
	return hex.EncodeToString(sum[:8])
}

// maxRecalled bounds the intents of an issue that are asked for.
const maxRecalled = 100

// recall finds the newest intent of an issue at the runner. Which commands were
// read is not known any more, so those that were written up to now are not: one
// that was refused would be carried out later.
func (w *Watcher) recall(ctx context.Context, s *seen) error {
	s.mark = mark{Note: "our comment was edited by another one, so this is a new one; " +
		"commands that were written before it and not answered have to be written again"}
	for n := 1; n <= maxRecalled; n++ {
		id, err := w.intentID(&s.Issue, n)
		if err != nil {
			return err
		}
		project, err := w.projectOf(ctx, id)
		if err != nil {
			return err
		}
		if project == "" {
			break
		}
		s.mark.Project, s.mark.Intent, s.mark.Count = string(project), string(id), n
	}
	for _, c := range s.comments {
		s.mark.Last = max(s.mark.Last, c.ID)
	}
	if !s.Open {
		s.mark.Closed = s.mark.Count
	}
	w.cfg.Log.WarnContext(ctx, "our comment on an issue was edited by another one, and is left alone", "issue",
		fmt.Sprintf("%s#%d", s.Repository.Name, s.Number), "intent", s.mark.Intent)
	return nil
}

// projectOf returns the project that has an intent; empty if none has.
func (w *Watcher) projectOf(ctx context.Context, id forge.IntentID) (forge.ProjectID, error) {
	for _, p := range w.cfg.Projects {
		_, err := w.cfg.Submissions.Show(ctx, forge.Key{Project: p, Intent: id}, w.cfg.Gateway, document.Page{})
		if err == nil {
			return p, nil
		}
		if refused, ok := errors.AsType[*requests.RequestError](err); !ok || refused.Code != http.StatusNotFound {
			return "", err
		}
	}
	return "", nil
}
