package intake

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge/internal/term"
)

// compare has a person asked if the text was edited after the trigger by an account
// that may not trigger the same rule: who asked has not seen what it says now. An
// edit in the same second counts as a later one, since forges tell no shorter times.
func (d *Decision) compare(t *Trigger, f found) {
	if f.rule == nil || f.rule.Do == Ignore {
		return
	}
	since := askedAt(t, f.rule)
	for i := range t.Edits {
		e := &t.Edits[i]
		known := e.By.ID > 0
		if e.At.Before(since) || known && (e.By.ID == f.asker.ID || f.rule.matchAsker(&t.Author, &e.By) == "") {
			continue
		}
		if d.Do == Go {
			d.Do = Ask
		}
		d.Edited = edited(e, &f.asker)
	}
}

// askedAt returns when the asker of a rule asked. Without a label or a command
// the author's text itself asks, and every edit of it is later.
func askedAt(t *Trigger, r *Rule) time.Time {
	if t.Command != "" {
		return t.Commanded
	}
	for _, l := range t.Labels {
		if r.When.Label != "" && strings.EqualFold(l.Name, r.When.Label) {
			return l.At
		}
	}
	return time.Time{}
}

// maxLogin bounds a login in a sentence, in characters.
const maxLogin = 60

// edited returns the sentence about an edit behind the back of who asked.
func edited(e *Edit, asker *Account) string {
	by, when := "an account that the forge does not tell", "after "
	if e.By.ID > 0 {
		by, when = term.Short(e.By.Login, maxLogin)+", who may not ask for it", ""
	}
	return fmt.Sprintf("the text was edited %s%s by %s. So it is not known that %s, who asked, has read it, and a person is asked",
		when, stamp(e.At), by, term.Short(asker.Login, maxLogin))
}

// stamp returns a time of a forge for a sentence.
func stamp(at time.Time) string { return at.UTC().Format(time.RFC3339) }

// Delivered collects the texts and the edits that deliveries about one issue tell. They are
// hints: with them a decision is stricter, or as it would be without. The zero value has none.
type Delivered struct {
	// texts has the last time at which the text is said to have had a hash.
	texts []version
	// edits has the last edit of each account.
	edits []Edit
}

// version is a text that an issue had at a time, by its hash.
type version struct {
	hash string
	at   time.Time
}

// maxDelivered bounds the texts, and the editors, that are kept between two
// looks at an issue. Of more, the first say enough.
const maxDelivered = 100

// Add takes a delivery: the hash that the text had at a time, and the account that had
// edited it, if the delivery is about that. One that does not say when is of no use.
func (t *Delivered) Add(hash string, at time.Time, by Account) {
	if hash == "" || at.IsZero() {
		return
	}
	i := slices.IndexFunc(t.texts, func(one version) bool { return one.hash == hash })
	switch {
	case i >= 0 && at.After(t.texts[i].at):
		t.texts[i].at = at
	case i < 0 && len(t.texts) < maxDelivered:
		t.texts = append(t.texts, version{hash, at})
	}
	if by.ID <= 0 {
		return
	}
	i = slices.IndexFunc(t.edits, func(e Edit) bool { return e.By.ID == by.ID })
	switch {
	case i >= 0 && at.After(t.edits[i].At):
		t.edits[i].At = at
	case i < 0 && len(t.edits) < maxDelivered:
		t.edits = append(t.edits, Edit{by, at})
	}
}

// Edits returns the edits that the forge knows of and those that follow from the deliveries, the
// oldest first. hash is that of the text as the forge has it now. Where the text was another one
// at a time, and no edit after that is known, there was one by an account that is not known.
func (t *Delivered) Edits(known []Edit, hash string) []Edit {
	if t == nil {
		return known
	}
	all := append(slices.Clone(known), t.edits...)
	var last, other time.Time
	for i := range all {
		if all[i].At.After(last) {
			last = all[i].At
		}
	}
	for _, one := range t.texts {
		if one.hash != hash && one.at.After(other) {
			other = one.at
		}
	}
	if !other.IsZero() && !last.After(other) {
		all = append(all, Edit{At: other})
	}
	slices.SortFunc(all, func(a, b Edit) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.By.ID, b.By.ID)) })
	return all
}
