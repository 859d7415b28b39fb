package edits

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/forgedir/person"
	"github.com/pfl-forge/pfl-forge/internal/strictyaml"
)

// comparison finds a person's changes: the differences between the person's version of
// a file and the version that the person started from. A change that the present
// state has already is done, and makes no event.
type comparison struct {
	in   *person.Input
	mine document.Intent // the person's version
	pos  *strictyaml.Positions
	now  document.Intent // the present one
	view *forge.View     // the present state

	// base is the version that the edit started from if based is set. If that is not
	// known any more, it is the present one. Stale says that the person's version names
	// an older one, so that a difference need not be the person's doing.
	base         document.Intent
	based, stale bool

	problems []person.Problem
}

// run returns the events in the order in which they must be decided, without their ids:
// changed texts, answers, the approval. They count only if there are no problems. It
// notes in the input which field each event is about, for refusals.
func (c *comparison) run() []forge.Event {
	c.in.Source.Positions = c.pos
	if c.foreign() {
		return nil
	}
	c.fixed()
	var events []forge.Event
	add := func(field string, e forge.Event) {
		events = append(events, e)
		c.in.Source.Fields = append(c.in.Source.Fields, field)
	}
	edit, field := c.edit()
	if field != "" {
		add(field, forge.Event{Message: &edit})
	}
	for i, a := range c.answers() {
		if a != nil {
			add(fmt.Sprintf("clarifications[%d].answer", i), forge.Event{Message: a})
		}
	}
	if approve := c.approval(); approve != nil && edit.Body != nil {
		c.refuse("status", "leave the status as it is until there is a plan for the new body",
			"cannot be approved together with a changed body: the plan is for the old one")
	} else if approve != nil {
		add("status", forge.Event{Message: approve})
	}
	slices.SortStableFunc(c.problems, person.ByLine)
	return events
}

// refuse adds a problem of a field, with its line.
func (c *comparison) refuse(field, hint, format string, args ...any) {
	c.problems = append(c.problems, person.Problem{
		Path: c.in.Path, Line: c.pos.Errorf(field, "").Line, Field: field,
		Reason: fmt.Sprintf(format, args...), Hint: hint,
	})
}

// foreign refuses the file of another intent, copied or renamed: the name says whose
// file it is.
func (c *comparison) foreign() bool {
	if c.based || c.mine.Origin == nil || c.now.Origin == nil || c.mine.CreatedAt.Equal(c.now.CreatedAt) ||
		reflect.DeepEqual(c.mine.Origin, c.now.Origin) {
		return false
	}
	c.refuse("origin", "undo the rename, or remove the file to have it written again",
		"is the id of another intent; this file is intent %s", c.in.Intent)
	return true
}

// fixed refuses changes of fields that a person cannot change here. A key that was
// taken out is no change: it comes back when the file is written again.
func (c *comparison) fixed() {
	c.final("criteria", c.base.Criteria, c.mine.Criteria)
	goal := c.base.Goal.Values()
	for field, mine := range c.mine.Goal.Values() {
		c.final(field, goal[field], mine)
	}
	mine := c.mine.Values()
	for i, b := range c.base.Values() {
		switch b.Edit {
		case document.EditOwn, document.EditGoal:
			continue
		case document.EditItself:
			if c.stale {
				continue
			}
		}
		if c.changed(b.Name, b.Value, mine[i].Value) {
			c.refuse(b.Name, person.Undo, "cannot be changed here; title, body, type, risk, answers and status: approved can")
		}
	}
}

// final refuses a change of a field that only the draft can set: criteria and the settings
// of a goal.
func (c *comparison) final(field string, b, m any) {
	if c.changed(field, b, m) {
		c.refuse(field, person.Undo+"; or cancel the intent and write another draft",
			"cannot be changed: goals are fixed when they are submitted")
	}
}

// changed reports whether a field is there with another value than it had. Null, empty
// and missing values are the same.
func (c *comparison) changed(field string, b, m any) bool {
	return c.pos.Has(field) && !equal(b, m) && !(isEmpty(b) && isEmpty(m))
}

// equal compares two values; times are equal in all zones.
func equal(a, b any) bool {
	if t, ok := a.(time.Time); ok {
		return t.Equal(b.(time.Time))
	}
	return reflect.DeepEqual(a, b)
}

// isEmpty reports whether a value says nothing: zero, null, or a list or mapping without
// entries.
func isEmpty(v any) bool {
	r := reflect.ValueOf(v)
	return r.IsZero() || (r.Kind() == reflect.Slice || r.Kind() == reflect.Map) && r.Len() == 0
}

// edit returns the changed texts as one event, and the first field that is one of them,
// which a refusal of the event is shown at; empty if nothing changed.
func (c *comparison) edit() (edit forge.Edit, first string) {
	base, mine, now := c.base.Texts(), c.mine.Texts(), c.now.Texts()
	for _, f := range document.Fields() {
		text := mine[f.Name]
		if f.Edit == nil || !c.pos.Has(f.Name) || text == base[f.Name] || text == now[f.Name] {
			continue
		}
		if !c.based && text == "" && f.Name != "title" && f.Name != "body" {
			continue // from before it was judged
		}
		if reason := f.Check(text); reason != "" {
			c.refuse(f.Name, person.Undo, "%s", reason)
			continue
		}
		if first == "" {
			first = f.Name
		}
		f.Edit(&edit, text)
	}
	return edit, first
}

// answers returns the new answers by the index of their question; nil for questions
// without one.
func (c *comparison) answers() []*forge.Answer {
	if !c.pos.Has("clarifications") {
		return nil
	}
	if n := len(c.mine.Clarifications); n != len(c.base.Clarifications) && !(c.stale && n < len(c.base.Clarifications)) {
		c.refuse("clarifications", person.Undo, "questions cannot be added or removed")
		return nil
	}
	out := make([]*forge.Answer, len(c.mine.Clarifications))
	for i := range c.mine.Clarifications {
		out[i] = c.answer(i)
	}
	return out
}

// answer returns the new answer to a question, or nil. Question, context and
// suggestions cannot be changed, and an answer cannot be taken back. It can be changed as
// long as the runner takes the new one.
func (c *comparison) answer(i int) *forge.Answer {
	field := fmt.Sprintf("clarifications[%d].", i)
	b, m := c.base.Clarifications[i], c.mine.Clarifications[i]
	for _, f := range []struct {
		field string
		b, m  any
	}{
		{"question", b.Question, m.Question},
		{"context", b.Context, m.Context},
		{"suggested_answers", b.SuggestedAnswers, m.SuggestedAnswers},
		{"param", b.Param, m.Param},
	} {
		if c.pos.Has(field+f.field) && !reflect.DeepEqual(f.b, f.m) {
			c.refuse(field+f.field, person.Undo, "cannot be changed; only the answer can")
			return nil
		}
	}
	if !c.pos.Has(field+"answer") || reflect.DeepEqual(b.Answer, m.Answer) || c.answered(i, m.Answer) {
		return nil
	}
	switch {
	case m.Answer == nil && c.stale: // from before it was answered
		return nil
	case m.Answer == nil:
		c.refuse(field+"answer", person.Undo, "an answer cannot be taken back")
		return nil
	case strings.TrimSpace(*m.Answer) == "":
		c.refuse(field+"answer", "write the answer, or null", "is empty")
		return nil
	}
	if reason := document.CheckText(*m.Answer); reason != "" {
		c.refuse(field+"answer", "", "%s", reason)
		return nil
	}
	return &forge.Answer{Index: i, Question: b.Question, Answer: *m.Answer}
}

// answered reports whether the present state has this answer to the question.
func (c *comparison) answered(i int, answer *string) bool {
	return i < len(c.now.Clarifications) && answer != nil &&
		c.now.Clarifications[i].Question == c.base.Clarifications[i].Question &&
		reflect.DeepEqual(c.now.Clarifications[i].Answer, answer)
}
