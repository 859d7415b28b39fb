package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path"
	"slices"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/journal/chain"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/local/loss"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/forgedir"
	"github.com/pfl-forge/pfl-forge/services/runner"
)

// FindLost compares the store with what its files show of it; nil if nothing is
// lost. The bus is nil if there is no store. It changes nothing.
func (r *Repository) FindLost(ctx context.Context, b *bus.Bus) (*loss.Error, error) {
	shown, project, err := forgedir.ShownIn(r.Root)
	if err != nil || len(shown) == 0 && b == nil {
		return nil, err
	}
	return r.compared(ctx, b, shown, project)
}

// checkWhole returns a *loss.Error if the store has less than the files show.
func (d *filesSync) checkWhole(ctx context.Context) error {
	e, err := d.repo.compared(ctx, d.bus, d.files.Shown(), d.files.ShownProject())
	if err != nil || e == nil {
		return err
	}
	return e
}

// compared compares the journals with what the files show. Of the project's own
// journal the chain is followed as well: the runner reads it anyhow, and while
// it is broken every intent waits for an answer that does not come.
func (r *Repository) compared(ctx context.Context, b *bus.Bus, shown map[forge.IntentID]uint64, project uint64) (*loss.Error, error) {
	if b == nil {
		return loss.Between(ctx, nil, r.Project, loss.Shown{Intents: shown, Project: project}, nil, chain.Head{})
	}
	stored, err := b.Journal.Sequences(ctx, r.Project)
	if err != nil {
		return nil, err
	}
	_, head, err := b.Journal.Load(ctx, forge.Key{Project: r.Project})
	if err != nil {
		return nil, err
	}
	return loss.Between(ctx, b, r.Project, loss.Shown{Intents: shown, Project: project}, stored, head)
}

// Rescued tells how it goes on with an intent of which something was lost.
type Rescued struct {
	loss.Intent `yaml:",inline"`
	// Title and Status are those that its file shows; empty if there is none that can be read.
	Title  string       `json:"title"  yaml:"title"`
	Status forge.Status `json:"status" yaml:"status"`
	// Draft is the draft that asks for it once more; empty if there is none.
	Draft string `json:"draft,omitempty" yaml:"draft,omitempty"`
	// Why says why there is no draft.
	Why string `json:"why,omitempty" yaml:"why,omitempty"`
}

// Recovery tells how it goes on with a store that has lost something.
type Recovery struct {
	Intents []Rescued
	// Moved is where the store was moved, as it contradicted itself; empty if it goes on.
	Moved string
	// Why says how it contradicted itself.
	Why string
}

// Rescue opens a session like Open, in a store that has lost something. Before anything
// is decided, it writes a draft of each intent that the store has nothing of, unless it
// had ended, another system or a reflection asked for it, or the base branch has
// something of it; then it moves the files of all that lost something to .forge/kept,
// and has those that are left written anew. After a crash it can be called again.
//
// What is left of a store has to be a state that it once had. Where journals name
// messages that others do not have any more, intents and project would wait for each
// other without an end: then the whole store is moved to .forge/kept, and an empty one
// takes its place. With restored it is a backup that was just put in place, which stays.
func Rescue(ctx context.Context, repo *Repository, restored bool, log *slog.Logger) (s *Session, found *Recovery, err error) {
	if s, err = open(ctx, repo, log); err != nil {
		return nil, nil, err
	}
	if s.server == nil {
		return s, &Recovery{}, nil
	}
	found, err = s.recover(ctx, restored)
	if err == nil {
		err = s.decide(ctx, runner.Config{})
	}
	if err != nil {
		s.Close(ctx)
		return nil, nil, err
	}
	return s, found, nil
}

// recover makes the files show what the store has.
func (s *Session) recover(ctx context.Context, restored bool) (*Recovery, error) {
	lost, err := s.Repo.FindLost(ctx, s.Bus)
	if err != nil {
		return nil, err
	}
	if lost != nil && len(lost.Others) > 0 {
		return nil, lost
	}
	if restored {
		if err := s.ofThisProject(ctx); err != nil {
			return nil, err
		}
	}
	found := &Recovery{}
	var unshown []Rescued
	if !restored {
		if found.Why, err = loss.Contradiction(ctx, s.Bus, s.Repo.Project); err != nil {
			return nil, err
		}
	}
	if found.Why != "" {
		if unshown, err = s.unshown(ctx); err != nil {
			return nil, err
		}
		if found.Moved, err = s.anew(ctx); err != nil {
			return nil, err
		}
	}
	found.Intents, err = s.rescue(ctx)
	found.Intents = append(found.Intents, unshown...)
	return found, err
}

// ofThisProject returns an error if the store has other projects alone: a
// backup of them shows nothing here.
func (s *Session) ofThisProject(ctx context.Context) error {
	list, err := s.Bus.Journal.Projects(ctx)
	if err != nil || len(list) == 0 || slices.Contains(list, s.Repo.Project) {
		return err
	}
	return fmt.Errorf("it is a backup of project %s, and this folder makes project %s: name the folder %s", list[0], s.Repo.Project, list[0])
}

// unshown returns the intents that the store has and no file shows, since it is
// cut off right after they were asked for.
func (s *Session) unshown(ctx context.Context) (list []Rescued, err error) {
	shown, _, err := forgedir.ShownIn(s.Repo.Root)
	if err != nil {
		return nil, err
	}
	stored, err := s.Bus.Journal.Sequences(ctx, s.Repo.Project)
	for _, id := range slices.Sorted(maps.Keys(stored)) {
		if shown[id] == 0 {
			list = append(list, Rescued{Intent: loss.Intent{ID: id}, Why: "no file shows it; ask for it again"})
		}
	}
	return list, err
}

// anew moves the store to .forge/kept, and goes on with an empty one. It returns where it is now.
func (s *Session) anew(ctx context.Context) (string, error) {
	s.Bus.Close()
	s.server.Shutdown()
	root, err := os.OpenRoot(s.Repo.Root)
	if err != nil {
		return "", err
	}
	defer func() { _ = root.Close() }()
	moved := path.Join(keptDir, "nats-"+time.Now().UTC().Format("20060102T150405.000Z"))
	if err := root.MkdirAll(keptDir, 0o755); err != nil {
		return "", err
	}
	if err := root.Rename(storeDir, moved); err != nil {
		return "", err
	}
	next, err := start(ctx, s.Repo, purposeCommand, s.log)
	if err != nil {
		return "", err
	}
	s.Bus, s.server = next.Bus, next.server
	return moved, nil
}

// Missing looks as Rescue would, and returns the intents of which something is lost,
// and how the store contradicts itself; then nothing of it goes on. It changes nothing.
func (r *Repository) Missing(ctx context.Context, b *bus.Bus) (list []loss.Intent, why string, err error) {
	lost, err := r.FindLost(ctx, b)
	switch {
	case err != nil:
		return nil, "", err
	case lost != nil && len(lost.Others) > 0:
		return nil, "", lost
	case lost != nil:
		list = lost.Lost
	}
	if b == nil {
		return list, "", nil
	}
	if why, err = loss.Contradiction(ctx, b, r.Project); err != nil || why == "" {
		return list, "", err
	}
	shown, _, err := forgedir.ShownIn(r.Root)
	return loss.Of(shown, nil), why, err
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
	list := loss.Of(d.files.Shown(), stored)
	if len(list) == 0 {
		return nil, d.rememberProject(ctx)
	}
	onBranch, err := s.Repo.Merged(ctx, s.Repo.Project)
	if err != nil {
		return nil, err
	}
	merged := map[forge.IntentID]bool{}
	for _, l := range onBranch {
		merged[l.Intent] = true
	}
	rescued := make([]Rescued, len(list))
	docs := make([]document.Intent, len(list))
	stays := map[string]bool{} // what a draft can depend on
	for id := range stored {
		stays[string(id)] = true
	}
	for i, l := range list {
		rescued[i].Intent = l
		docs[i] = d.judge(&rescued[i], merged[l.ID])
		stays[string(l.ID)] = l.Stored > 0 || rescued[i].Why == ""
	}
	for i := range list {
		if err := d.redraft(&rescued[i], &docs[i], stays); err != nil {
			return nil, err
		}
		if err := d.files.SetAside(list[i].ID); err != nil {
			return nil, err
		}
	}
	return rescued, d.rememberProject(ctx)
}

// judge reads the file of an intent, and says why no draft of it is to be written.
func (d *filesSync) judge(r *Rescued, merged bool) document.Intent {
	doc, ok := d.files.ReadIntent(r.ID)
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

// redraft writes a draft of an intent, unless there is a reason why not. It
// depends on nothing that is lost.
func (d *filesSync) redraft(r *Rescued, doc *document.Intent, stays map[string]bool) error {
	if r.Why != "" {
		return nil
	}
	doc.DependsOn = slices.DeleteFunc(doc.DependsOn, func(id string) bool { return !stays[id] })
	path, err := d.files.Redraft(r.ID, doc)
	if errors.Is(err, fs.ErrExist) {
		r.Why = path + " is there already"
		return nil
	}
	r.Draft = path
	return err
}
