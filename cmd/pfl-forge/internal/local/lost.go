package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/forgedir"
)

// Lost is an intent of which the store has less than its files show: a part of the store is gone, such as what a
// machine had not written yet when its power failed, or all of it.
type Lost struct {
	Intent forge.IntentID `json:"intent" yaml:"intent"`
	// Shown and Stored are the journal sequences that the files show and that the store has; Stored is 0 if it has
	// nothing of the intent.
	Shown  uint64 `json:"shown"  yaml:"shown"`
	Stored uint64 `json:"stored" yaml:"stored"`
}

// LostError is returned where something would be decided although the store has lost something: it would be done
// twice, or forgotten.
type LostError struct {
	// Lost is not empty, and sorted by intent.
	Lost []Lost
	// Others are the projects that the store has, if it has nothing of this one.
	Others []forge.ProjectID
}

// maxNamed bounds the intents that an error names.
const maxNamed = 3

// What says what is lost.
func (e *LostError) What() string {
	var names []string
	for _, l := range e.Lost[:min(len(e.Lost), maxNamed)] {
		names = append(names, string(l.Intent))
	}
	what := "the store has lost what .forge shows of " + strings.Join(names, ", ")
	if more := len(e.Lost) - len(names); more > 0 {
		what += fmt.Sprintf(" and %d more", more)
	}
	return what
}

// Error says what is lost, and what to do.
func (e *LostError) Error() string {
	what := e.What()
	if len(e.Others) > 0 {
		return fmt.Sprintf("%s: it is that of project %s. If this folder was renamed, rename it back; otherwise put a backup in place with "+
			"pfl-forge restore, or see pfl-forge recover --dry-run", what, e.Others[0])
	}
	return what + ", so nothing is decided: put a backup in place with pfl-forge restore, or see pfl-forge recover --dry-run"
}

// FindLost returns the intents of which the store has less than their files show, sorted. It changes nothing.
func (r *Repository) FindLost(ctx context.Context, b *bus.Bus) ([]Lost, error) {
	shown, err := forgedir.ShownIn(r.Root)
	if err != nil {
		return nil, err
	}
	return lost(ctx, b, r.Project, shown)
}

// checkWhole returns a *LostError if the store has less than the files show.
func (d *filesSync) checkWhole(ctx context.Context) error {
	list, err := lost(ctx, d.bus, d.repo.Project, d.files.Shown())
	if err != nil || len(list) == 0 {
		return err
	}
	e := &LostError{Lost: list}
	if !slices.ContainsFunc(list, func(l Lost) bool { return l.Stored > 0 }) {
		if e.Others, err = d.bus.Journal.Projects(ctx); err != nil {
			return err
		}
		if slices.Contains(e.Others, d.repo.Project) {
			e.Others = nil
		}
	}
	return e
}

// lost compares the journals with what the files show. The bus is nil if there is no store.
func lost(ctx context.Context, b *bus.Bus, project forge.ProjectID, shown map[forge.IntentID]uint64) ([]Lost, error) {
	if len(shown) == 0 {
		return nil, nil
	}
	var stored map[forge.IntentID]uint64
	if b != nil {
		var err error
		if stored, err = b.Journal.Sequences(ctx, project); err != nil {
			return nil, err
		}
	}
	return lostOf(shown, stored), nil
}

// lostOf returns the intents of which less is stored than shown, sorted.
func lostOf(shown, stored map[forge.IntentID]uint64) (list []Lost) {
	for id, seq := range shown {
		if stored[id] < seq {
			list = append(list, Lost{id, seq, stored[id]})
		}
	}
	slices.SortFunc(list, func(a, b Lost) int { return strings.Compare(string(a.Intent), string(b.Intent)) })
	return list
}

// Rescued tells how it goes on with an intent of which something was lost.
type Rescued struct {
	Lost `yaml:",inline"`
	// Title and Status are those that its file shows; empty if there is none that can be read.
	Title  string       `json:"title"  yaml:"title"`
	Status forge.Status `json:"status" yaml:"status"`
	// Draft is the draft that asks for it once more; empty if there is none.
	Draft string `json:"draft,omitempty" yaml:"draft,omitempty"`
	// Why says why there is no draft.
	Why string `json:"why,omitempty" yaml:"why,omitempty"`
}

// Rescue opens a session like Open, in a store that has lost something. Before anything is decided, it writes a draft
// of each intent that the store has nothing of, unless it had ended, another system or a reflection asked for it, or the
// base branch has something of it; then it moves the files of all that lost something to .forge/kept, and has those that
// are left written anew. After a crash it can be called again.
func Rescue(ctx context.Context, repo *Repository, log *slog.Logger) (s *Session, rescued []Rescued, err error) {
	if s, err = open(ctx, repo, log); err != nil {
		return nil, nil, err
	}
	if s.server != nil {
		rescued, err = s.rescue(ctx)
	}
	if err == nil && s.server != nil {
		err = s.decide(ctx)
	}
	if err != nil {
		s.Close(ctx)
		return nil, nil, err
	}
	return s, rescued, nil
}

// rescue makes the files show what the store has.
func (s *Session) rescue(ctx context.Context) ([]Rescued, error) {
	d, err := openFilesSync(s.Bus, s.Repo, s.log)
	if err != nil {
		return nil, err
	}
	defer d.close()
	stored, err := s.Bus.Journal.Sequences(ctx, s.Repo.Project)
	if err != nil {
		return nil, err
	}
	list := lostOf(d.files.Shown(), stored)
	if len(list) == 0 {
		return nil, nil
	}
	landed, err := s.Repo.Landed(ctx, s.Repo.Project)
	if err != nil {
		return nil, err
	}
	merged := map[forge.IntentID]bool{}
	for _, l := range landed {
		merged[l.Intent] = true
	}
	rescued := make([]Rescued, len(list))
	docs := make([]document.Intent, len(list))
	stays := map[string]bool{} // what a draft can depend on
	for id := range stored {
		stays[string(id)] = true
	}
	for i, l := range list {
		rescued[i].Lost = l
		docs[i] = d.judge(&rescued[i], merged[l.Intent])
		stays[string(l.Intent)] = l.Stored > 0 || rescued[i].Why == ""
	}
	for i := range list {
		if err := d.redraft(&rescued[i], &docs[i], stays); err != nil {
			return nil, err
		}
		if err := d.files.SetAside(list[i].Intent); err != nil {
			return nil, err
		}
	}
	return rescued, nil
}

// judge reads the file of an intent, and says why no draft of it is to be written.
func (d *filesSync) judge(r *Rescued, merged bool) document.Intent {
	doc, ok := d.files.ReadIntent(r.Intent)
	r.Title, r.Status = doc.Title, forge.Status(doc.Status)
	switch {
	case r.Stored > 0:
		r.Why = "the store has it"
	case !ok:
		r.Why = "its file cannot be read"
	case r.Status.Ended():
		r.Why = "it had ended: " + doc.Status
	case merged:
		r.Why = "the base branch has changes of it: look what is missing, and ask for that"
	case doc.Parent != nil:
		r.Why = "it is a part of " + *doc.Parent
	case doc.Source != string(forge.SourceHuman):
		r.Why = "no person asked for it (" + doc.Source + ")"
	}
	return doc
}

// redraft writes a draft of an intent, unless there is a reason why not. It depends on nothing that is lost.
func (d *filesSync) redraft(r *Rescued, doc *document.Intent, stays map[string]bool) error {
	if r.Why != "" {
		return nil
	}
	doc.DependsOn = slices.DeleteFunc(doc.DependsOn, func(id string) bool { return !stays[id] })
	path, err := d.files.Redraft(r.Intent, doc)
	if errors.Is(err, fs.ErrExist) {
		r.Why = path + " is there already"
		return nil
	}
	r.Draft = path
	return err
}
