package approval

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/rules"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/rule"
)

// maxWords bounds the words of a wish for changes, in bytes: commands carry them.
const maxWords = 16 << 10

// Wished is the newest wish for changes that was heard, with the hash of what it was about.
//
// Who is to approve a plan, or changes, may ask for others instead. What becomes of that
// is up to packages plan and task; here is who may, and which of several wishes counts:
//
//	it names another hash than what waits        refused: the person saw something else
//	it is the first about what waits             what waits is made again with its words
//	it is a later one about the same hash        refused, with the name of whose words count
//	it is the same once more                     ignored
//	it is an approval of the same hash           refused: it would be of what is not wanted any more
//
// A hash may come back, where an agent comes to the same plan or patch: then it
// waits anew, and another wish about it is the first one.
type Wished struct {
	// Wish has the person and their words, without white space around them.
	forge.Wish

	// Hash is that of the plan or the changes, or the commit of a change that
	// its reviewers disagree about, as the person gave it.
	Hash string
}

// Again returns the answer to another wish, or, without words, to an approval,
// of what this one was about; no error if it is about something else.
func (w *Wished) Again(other *Wished) (forge.Decision, error) {
	switch {
	case w.Hash == "" || w.Hash != other.Hash:
		return forge.Applied, nil
	case *w == *other:
		return rule.Ignore("this was asked for already, and it is made again")
	}
	return rule.Refuse("%s asked for changes of %s meanwhile: it is made again with those words, and nothing else is taken", w.by(), w.Hash)
}

// by returns who asks; a machine may know no name of its user.
func (w *Wished) by() string {
	if w.Person == "" {
		return "a person"
	}
	return strconv.Quote(w.Person)
}

// Check returns why a wish for changes is none of a person who may ask for them,
// by a version of the rules; nil if it is. Whoever may approve may. Who asked
// for the intent is not barred from it: it lets nothing through. A mistake in a
// field comes before the question who asked, and is a *forge.FieldError.
func (w *Wished) Check(r *Rules, by rules.Version) error {
	open := *r
	open.NotRequester = false
	why, setting := open.Objection(w.Person)
	switch {
	case w.Hash == "":
		return &forge.FieldError{Field: "hash", Reason: "is missing: the one of what was shown, so that nothing else is made again"}
	case w.Words == "":
		return &forge.FieldError{Field: "words", Reason: "is empty: say what has to be different"}
	case len(w.Words) > maxWords:
		return &forge.FieldError{Field: "words", Reason: fmt.Sprintf("has %d bytes; at most %d are allowed", len(w.Words), maxWords)}
	case why != "":
		return fmt.Errorf("%s (%s); those who may ask for changes are the same", why, setting)
	case !by.Has(rules.RequestedChanges):
		return errors.New("a runner of an older version is still there, which could not handle that; ask again when all are upgraded")
	}
	return nil
}

// Line returns who asks for which changes, for the history.
func (w *Wished) Line() string { return w.by() + ": " + rule.FirstLine(w.Words) }

// Join returns the people whose words are in an intent, with one more: whoever edits
// the text, answers a question, asks for changes or instructs the agents says what
// is to be done, too. The name is proven, because wishes about an intent come on the
// subjects of people alone. A list that views or snapshots hold is never written to.
func Join(list []forge.Identity, by string) []forge.Identity {
	next := forge.Identity{Name: by, Proven: true}
	if by == "" || slices.Contains(list, next) {
		return list
	}
	return append(slices.Clip(list), next)
}

// Words says whose an instruction is.
type Words struct {
	By string // the person
	// Parent says that they are those that a parent passes on.
	Parent bool
}

// WordsOf returns whose the words of an event are. A person may have the name
// of the parent: what a machine sent names a record of its journal.
func WordsOf(ev *forge.Event, parent forge.IntentID) Words {
	return Words{By: ev.Actor, Parent: parent != "" && ev.Anchor != "" && ev.Actor == string(parent)}
}

// Join adds the authors of w to a list of people: the sender, or the people in
// named where a parent intent passes their words on.
func (w Words) Join(list, named []forge.Identity) []forge.Identity {
	if !w.Parent {
		return Join(list, w.By)
	}
	for _, one := range named {
		if one.Name != "" && !slices.Contains(list, one) {
			list = append(slices.Clip(list), one)
		}
	}
	return list
}

// Reason returns why an approval is needed, then how many there are of how many, who
// may not give one, and whether there can ever be enough. All lists and notifications show
// the reason, so an intent never waits in silence.
func (r *Rules) Reason(why string, given []Approval) string {
	parts := []string{why}
	for _, more := range []string{r.Progress(given), r.barred(), r.Stuck()} {
		if more != "" {
			parts = append(parts, more)
		}
	}
	return strings.Join(parts, "; ")
}

// barred says who may not approve; empty if all may that the policy names.
func (r *Rules) barred() string {
	var parts []string
	if names := r.Barred(); len(names) > 0 {
		parts = append(parts, "not by "+strings.Join(names, ", ")+", who asked for it")
	}
	if r.NotRequester && len(r.Authors) > 0 {
		parts = append(parts, "not by who made a commit in it, as that says: "+strings.Join(r.Authors, ", "))
	}
	return strings.Join(parts, "; ")
}
