package look

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/pattern"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/heard"
	"github.com/pfl-forge/pfl-forge/services/gateway/intake"
)

// adopting matches how the rules say which commit on the branch of a pull
// request can become the change.
var adopting = pattern.New(` --adopt ([0-9a-f]{12,64})`)

// mark is all that is remembered of an issue. It stands at the beginning of our
// comment, where a page does not show it.
type mark struct {
	// Project and Intent are those of the newest intent; Count is how many there were.
	Project string `json:"project,omitempty"`
	Intent  string `json:"intent,omitempty"`
	Count   int    `json:"count,omitempty"`
	// Last is the last comment that was read.
	Last int64 `json:"last,omitempty"`
	// Closed is the Count of the intent for whose end the issue was closed. A
	// person who opens it again has the last word.
	Closed int `json:"closed,omitempty"`
	// Own is why the repository's own rules did not count when its newest trigger was decided on.
	Own string `json:"own,omitempty"`
	// Text names the text that the intent was submitted with, and Edited is why
	// that is not what its asker saw, if it is not.
	Text   string `json:"text,omitempty"`
	Edited string `json:"edited,omitempty"`
	// Sum is that of the whole comment as it was written; empty in what is remembered.
	Sum string `json:"sum,omitempty"`
	// Note is why the last trigger or command was refused.
	Note string `json:"note,omitempty"`
	// Due are the answers to the last commands, which are given after this is written.
	Due []answer `json:"owed,omitempty"`
}

// isZero reports whether there is nothing to remember.
func (m *mark) isZero() bool { return reflect.ValueOf(*m).IsZero() }

const (
	markBegin = "<!-- pfl-forge "
	markEnd   = " -->\n"
	// maxNote bounds a note, and maxQuoted the words of others in the comment, in bytes. Lists
	// end at maxText of the comment, so that with what follows them it stays below intake.MaxOut.
	maxNote   = 1000
	maxQuoted = 2000
	maxText   = 44 << 10
)

// readMark returns the mark that a comment begins with. Whether it is ours, its author says.
func readMark(body string) (m mark, ok bool) {
	body = strings.ReplaceAll(body, "\r\n", "\n")
	rest, found := strings.CutPrefix(body, markBegin)
	text, _, end := strings.Cut(rest, markEnd)
	return m, found && end && json.Unmarshal([]byte(text), &m) == nil
}

// String returns the mark as it stands in a comment. JSON spells < and > so
// that nothing in it ends the mark.
func (m *mark) String() string {
	for _, text := range []*string{&m.Note, &m.Own, &m.Edited} {
		if len(*text) > maxNote {
			*text = strings.ToValidUTF8((*text)[:maxNote], "")
		}
	}
	data, err := json.Marshal(m)
	if err != nil {
		panic(err) // it has only texts and numbers
	}
	return markBegin + string(data) + markEnd
}

// key returns the intent.
func (m *mark) key() (forge.Key, error) {
	p, err := forge.ParseProjectID(m.Project)
	if err != nil {
		return forge.Key{}, err
	}
	id, err := forge.ParseIntentID(m.Intent)
	return forge.Key{Project: p, Intent: id}, err
}

// text returns our comment: how the intent is, and which commands go on.
func (w *Watcher) text(s *seen) string {
	var b strings.Builder
	switch {
	case s.intent != nil:
		w.describe(&b, s)
	case s.mark.Intent != "":
		fmt.Fprintf(&b, "**accepted**: intent `%s` of project `%s`\n", s.mark.Intent, s.mark.Project)
	}
	if s.isDone() {
		b.WriteString("\n\nIt is done, and the issue is closed by that. Whoever opens it again can ask for more with a comment: `/forge run`\n")
	}
	for _, text := range []string{s.mark.Own, s.mark.Note} {
		if text != "" {
			fmt.Fprintf(&b, "\n\n%s\n", intake.Quote(text, w.cfg.Secrets, maxQuoted))
		}
	}
	m := s.mark
	m.Sum = sumOf(&s.Issue, m.String()+b.String())
	return m.String() + b.String()
}

// laterComments returns the comments that others wrote after the intent was submitted, and
// that command nothing. Their authors may think that they are worked on. Ids of comments
// grow, and forges tell no shorter times than seconds: so those behind our first comment
// count, and of a later intent of the issue those that are not of an earlier second.
func (s *seen) laterComments(self int64) []forges.Comment {
	since := s.intent.CreatedAt.Truncate(time.Second)
	return slices.DeleteFunc(heard.Others(s.comments, self), func(c forges.Comment) bool {
		behind := s.status.ID > 0 && c.ID > s.status.ID && !c.Created.Before(since)
		return !behind || strings.Contains(c.Body, "/forge")
	})
}

// describe writes how an intent is. Its words are escaped, so that no bot obeys
// them; what a command needs stands ready for copying.
func (w *Watcher) describe(b *strings.Builder, s *seen) {
	d := s.intent
	plain := func(text string) string { return intake.Plain(strings.TrimSpace(text), w.cfg.Secrets, maxQuoted) }
	fmt.Fprintf(b, "**%s**: intent `%s` of project `%s`", d.Status, d.Intent, d.Project)
	if d.TasksDone > 0 {
		fmt.Fprintf(b, ", %d of %d tasks done", d.TasksDone, d.Tasks)
	}
	b.WriteString("\n")
	switch {
	case d.Reason == "":
	case d.Waiting != "":
		fmt.Fprintf(b, "\nIt waits: %s\n", plain(d.Reason))
	case d.Status.Ended():
		fmt.Fprintf(b, "\n%s\n", plain(d.Reason))
	}
	if s.mark.Edited != "" && !d.Status.Ended() {
		fmt.Fprintf(b, "\nA person was asked for this reason: %s\n", plain(s.mark.Edited))
	}
	if s.later != "" {
		fmt.Fprintf(b, "\n%s\n", s.later)
	}
	if n := len(s.laterComments(w.self.ID)); n > 0 && !d.Status.Ended() {
		fmt.Fprintf(b, "\nComments that came after this was asked for and are no part of it: %d. What should be different is said by a command, "+
			"or at the pull request.\n", n)
	}
	for i, q := range d.Questions {
		if q.Answer == nil && b.Len() < maxText {
			question := intake.Quote(q.Question, w.cfg.Secrets, maxQuoted)
			fmt.Fprintf(b, "\nQuestion %d:\n%s\nAnswer with a comment: `/forge answer %d <text>`\n", i+1, question, i+1)
		}
	}
	if d.Waiting == forge.WaitingApproval && d.Plan != "" {
		writeApproval(b, s, w.cfg.Secrets)
		return
	}
	if words := adopting.FindStringSubmatch(d.Reason); d.Waiting == forge.WaitingPull && words != nil {
		fmt.Fprintf(b, "\nHave that commit become the change with a comment: `/forge adopt %s`\n", words[1])
	}
	for i, t := range d.TaskList {
		if b.Len() >= maxText {
			fmt.Fprintf(b, "\n- and %d more", len(d.TaskList)-i)
			break
		}
		fmt.Fprintf(b, "\n- %s: %s", t.Status, plain(t.Title))
	}
}
