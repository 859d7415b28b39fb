// Package publishers has systems that go on about an intent after they asked for it, in some worlds
// of the simulator, and knows what has to follow from that: nothing but that people are told.
//
// They edit the text where it came from, take that back, some of them for ever,
// and tell of comments; others say so who published nothing. What they say
// comes late, twice and in any order, as all does.
package publishers

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
)

// Bounds of a world: how often publishers say something, so that it comes to
// rest, and what of that an intent may remember of texts and of comments.
const (
	most         = 150
	mostTexts    = 20
	mostComments = 33
)

// Publishers are those of one world. Nil ones are of a world in which none says more.
type Publishers struct {
	rng *rand.Rand
	// eager says that one of them speaks at each step, of one intent.
	eager bool
	said  int
	// known is read from the journals of intents.
	known map[forge.Key]*known
}

// known is read from an intent's journal, without the rules of flow.
type known struct {
	first forge.Intent
	// titles and bodies can be worked on: the text that was taken, and what people
	// made of it since. A command that is held has the text of when it was made.
	titles, bodies []string
	// later is the text that was told last; empty while that is the one that was taken.
	later string
	texts int
	told  []string
	last  forge.Summary
}

// New returns the publishers of a world: there are some in one of 32.
func New(seed uint64) *Publishers {
	if seed%32 != 13 {
		return nil
	}
	rng := rand.New(rand.NewPCG(seed, 160))
	return &Publishers{rng: rng, eager: rng.IntN(2) == 0, known: map[forge.Key]*known{}}
}

// Say returns the event by which a publisher says more about one of the intents; nil if none does.
func (p *Publishers) Say(keys []forge.Key, now time.Time) *forge.Event {
	if p == nil || p.said >= most || !p.eager && p.rng.IntN(4) > 0 {
		return nil
	}
	var about []*known
	for _, key := range keys {
		if k := p.known[key]; k != nil && (k.last.Status == forge.StatusProposed || k.last.Status == forge.StatusExecuting) {
			about = append(about, k)
		}
	}
	if len(about) == 0 {
		return nil
	}
	p.said++
	k := about[0]
	if !p.eager {
		k = about[p.rng.IntN(len(about))]
	}
	in := forge.Intent{ID: k.first.ID, Project: k.first.Project, Source: k.first.Source, Origin: k.first.Origin}
	ev := &forge.Event{To: forge.Key{Project: in.Project, Intent: in.ID}, Actor: in.Origin.System, Message: &forge.Submit{Intent: in}}
	m := forge.As[*forge.Submit](ev.Message)
	if p.rng.IntN(6) == 0 {
		ev.Actor = "another" // who published nothing
	}
	if p.rng.IntN(3) == 0 {
		n := 1 + p.rng.IntN(p.said)
		m.Comments = &forge.Comments{Count: n, Account: "forge account 5 eve", Ref: fmt.Sprintf("shop#3 comment %d", n), At: now}
		return ev
	}
	m.Intent.Title, m.Intent.Body = k.first.Title, k.first.Body
	switch p.rng.IntN(3) {
	case 0: // as it was
	case 1:
		m.Intent.Title = fmt.Sprintf("another title, %d", p.said)
	default:
		m.Intent.Body = fmt.Sprintf("another body, %d", p.said)
	}
	return ev
}

// textOf returns a text in one piece, as far as a publisher has changed it.
func (k *known) textOf(in *forge.Intent) string {
	if in.Title == k.first.Title && in.Body == k.first.Body {
		return ""
	}
	return in.Title + "\n" + in.Body
}

// Check returns an error if a decision about an intent works on a text that was not taken, or
// changes anything for what is said later; if it takes that from another one, twice, or too much of
// it; or if people are not told that the text is another one.
func (p *Publishers) Check(rec *forge.Record) error {
	if p == nil {
		return nil
	}
	key := rec.Summary.Key
	k := p.known[key]
	if k == nil {
		k = &known{}
		p.known[key] = k
	}
	for i := range rec.Events {
		if err := k.learn(&rec.Events[i], rec); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	k.last = rec.Summary
	for i := range rec.Effects.Commands {
		if c := &rec.Effects.Commands[i]; !c.Attempt.Step.OfProject() && !(slices.Contains(k.titles, c.Intent.Title) && slices.Contains(k.bodies, c.Intent.Body)) {
			return fmt.Errorf("%s works on %q: %q, and taken was %q: %q", c.ID(), c.Intent.Title, c.Intent.Body, k.titles, k.bodies)
		}
	}
	if told := strings.Contains(rec.Summary.Reason, "its text was edited at"); !rec.Summary.Status.Ended() && told != (k.later != "") {
		return fmt.Errorf("%s: the text is %q now, and told is %q", key, k.later, rec.Summary.Reason)
	}
	return nil
}

// learn takes an event that was applied, of a record.
func (k *known) learn(ev *forge.Event, rec *forge.Record) error {
	switch m := ev.Message.(type) {
	case *forge.Submit:
		if k.first.ID == "" {
			k.first, k.titles, k.bodies = m.Intent, []string{m.Intent.Title}, []string{m.Intent.Body}
			k.first.ID, k.first.Project = rec.Summary.Key.Intent, rec.Summary.Key.Project
			return nil
		}
		if err := k.unmoved(rec); err != nil {
			return err
		}
		if m.Comments != nil {
			return k.commented(m.Comments)
		}
		return k.edited(m, ev.Actor)
	case *forge.Edit:
		if m.Title != nil {
			k.titles = append(k.titles, *m.Title)
		}
		if m.Body != nil {
			k.bodies = append(k.bodies, *m.Body)
		}
	default:
	}
	return nil
}

// unmoved returns an error if a record changes anything beside what people are
// told. Of several events the others may.
func (k *known) unmoved(rec *forge.Record) error {
	if len(rec.Events) > 1 {
		return nil
	}
	before, after := k.last, rec.Summary
	for _, s := range []*forge.Summary{&before, &after} {
		s.Reason, s.Comments, s.UpdatedAt = "", nil, time.Time{}
	}
	if !reflect.DeepEqual(before, after) || !reflect.DeepEqual(rec.Effects, forge.Effects{}) {
		return fmt.Errorf("what is said later changed it from %+v to %+v, with %+v", before, after, rec.Effects)
	}
	return nil
}

// edited takes another text.
func (k *known) edited(m *forge.Submit, by string) error {
	text := k.textOf(&m.Intent)
	k.texts++
	switch {
	case by != k.first.Origin.System:
		return fmt.Errorf("%s says that the text of %s was edited", by, k.first.Origin.System)
	case text == k.later:
		return fmt.Errorf("the text is told again: %q", text)
	case k.texts > mostTexts:
		return fmt.Errorf("the text was edited %d times", k.texts)
	case k.texts == mostTexts && text == "":
		return fmt.Errorf("the last change that is remembered, of %d, says that the text is as it was", k.texts)
	}
	k.later = text
	return nil
}

// commented takes comments.
func (k *known) commented(c *forge.Comments) error {
	if slices.Contains(k.told, c.Ref) {
		return fmt.Errorf("%s is told again", c.Ref)
	}
	if k.told = append(k.told, c.Ref); len(k.told) > mostComments {
		return fmt.Errorf("comments are told %d times", len(k.told))
	}
	return nil
}

// Texts returns how often a text was edited that is remembered, and Comments
// how often comments were told, of the intent of which it is the most.
func (p *Publishers) Texts() (n int) {
	for _, k := range p.known {
		n = max(n, k.texts)
	}
	return n
}

// Comments is documented with Texts.
func (p *Publishers) Comments() (n int) {
	for _, k := range p.known {
		n = max(n, len(k.told))
	}
	return n
}
