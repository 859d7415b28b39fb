package runner

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/journal"
	"github.com/pfl-forge/pfl-forge/bus/objects"
	"github.com/pfl-forge/pfl-forge/internal/logging"
	"github.com/pfl-forge/pfl-forge/services/runner/machine"
)

// snapshotEvery is the default of Config.SnapshotEvery. A start folds at most
// about so many records of each project, which takes some 50 ms.
const snapshotEvery = 2000

// snapshots keeps the states of projects in the object store, one for each name of
// rules: two versions that run side by side do not take each other's away. They are made
// beside the decisions, of a machine that is loaded for that: no decision waits for one.
type snapshots struct {
	store *objects.Store
	// every is the number of records after which a snapshot is made.
	every int
	// due has the projects of which one is to be made; the zero one stands for
	// the list of open intents.
	due chan due

	mu sync.Mutex
	// since counts the records that this runner appended since the last one,
	// those of all intents below the zero key.
	since map[forge.Key]int
}

// due is a project of which a snapshot is to be made: of the machine, or, if it
// is nil, of one that is loaded then. Without a project, it is the list of open
// intents that is to be kept, or one that is made then.
type due struct {
	forge.Key

	loaded *machine.Loaded
	open   *journal.Open
}

func newSnapshots(cfg *Config) *snapshots {
	return &snapshots{
		store: cfg.Bus.Objects, every: cmp.Or(cfg.SnapshotEvery, snapshotEvery), due: make(chan due, 64), since: map[forge.Key]int{},
	}
}

// appended notes that the journal of a project or an intent has a record more.
func (s *snapshots) appended(key forge.Key) {
	every := s.every
	if !key.IsProject() {
		key, every = forge.Key{}, every*openSeldom
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.since[key]++; s.since[key] >= every {
		s.ask(due{Key: key})
	}
}

// ask has a snapshot made soon. Where too many are to be made already, it is
// asked for again by a later record.
func (s *snapshots) ask(d due) {
	select {
	case s.due <- d:
		s.since[d.Key] = 0
	default:
	}
}

// resumed notes how a project was loaded, and has a snapshot made if much had
// to be folded. From then on the machine is not for the caller any more.
func (r *runner) resumed(ctx context.Context, key forge.Key, l *machine.Loaded) {
	if l.Folded < r.snapshots.every {
		return
	}
	ctx = logging.Machine(ctx, key)
	if l.Whole != "" {
		r.log.InfoContext(ctx, "the whole journal was read and folded", "records", l.Folded, "why", l.Whole)
	}
	r.snapshots.mu.Lock()
	defer r.snapshots.mu.Unlock()
	r.snapshots.ask(due{Key: key, loaded: l})
}

// keepSnapshots makes the snapshots that are due, until ctx ends.
func (r *runner) keepSnapshots(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case d := <-r.snapshots.due:
			if err := r.keep(ctx, d); err != nil && ctx.Err() == nil {
				r.log.WarnContext(logging.Machine(ctx, d.Key), "cannot store the snapshot for the next start, which takes longer", "error", err)
			}
		}
	}
}

// keep makes a snapshot, unless another runner has made one meanwhile, so that
// little had to be folded.
func (r *runner) keep(ctx context.Context, d due) error {
	if d.Key == (forge.Key{}) {
		return r.keepOpen(ctx, d.open)
	}
	if d.loaded == nil {
		l, err := r.driver.Load(ctx, d.Key)
		if err != nil || l.Folded < r.snapshots.every/2 {
			return err
		}
		d.loaded = l
	}
	return r.driver.Keep(ctx, d.Key, d.loaded)
}

// snapshotName names the object with the newest snapshot of a project by the present rules.
func snapshotName(project forge.ProjectID) objects.Name {
	return objects.Name{Project: project, Kind: objects.Snapshot, ID: machine.Rules()}
}

// Newest implements machine.Snapshots. The store compares the content with its digest,
// so half an object, or one that was altered on its way, is an error and not a state.
func (s *snapshots) Newest(ctx context.Context, key forge.Key) (*machine.Snapshot, error) {
	o, err := s.store.Read(ctx, snapshotName(key.Project))
	if errors.Is(err, bus.ErrNotFound) {
		return nil, machine.ErrNoSnapshot
	}
	if err != nil {
		return nil, err
	}
	r, err := gzip.NewReader(bytes.NewReader(o.Content))
	if err != nil {
		return nil, fmt.Errorf("unpack the snapshot: %w", err)
	}
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("unpack the snapshot: %w", err)
	}
	head, state, _ := bytes.Cut(data, []byte("\n"))
	var made machine.Snapshot
	if err := json.Unmarshal(head, &made); err != nil {
		return nil, fmt.Errorf("read the snapshot: %w", err)
	}
	made.State = state
	return &made, nil
}

// Keep implements machine.Snapshots. The content is complete before the name points to it: a
// runner that is killed meanwhile leaves the snapshot before it. Where two runners write at
// the same time, one of them wins, and each is true; the loser's is behind by a few records.
func (s *snapshots) Keep(ctx context.Context, key forge.Key, made *machine.Snapshot) error {
	// The state stands behind that on a line of its own: within other JSON it
	// would be read once more, from end to end.
	head := *made
	head.State = nil
	data, err := json.Marshal(&head)
	if err != nil {
		return fmt.Errorf("write the snapshot: %w", err)
	}
	var packed bytes.Buffer
	w, _ := gzip.NewWriterLevel(&packed, gzip.BestSpeed)
	for _, part := range [][]byte{data, []byte("\n"), made.State} {
		if _, err := w.Write(part); err != nil {
			return fmt.Errorf("pack the snapshot: %w", err)
		}
	}
	if err := w.Close(); err != nil {
		return fmt.Errorf("pack the snapshot: %w", err)
	}
	return s.store.Put(ctx, snapshotName(key.Project), &packed)
}
