package work

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/internal/streams"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
)

// maxNoted bounds the processes that a note names.
const maxNoted = 50

// notes are facts about an attempt that replicas tell one another by its lease: each holder of the
// lease for the same attempt keeps them, and they outlive a release by noteTTL. A holder that is
// killed takes them with it.
type notes struct {
	// GivenBack is the attempt that a holder gave back: see Lease.GiveBack.
	GivenBack string `json:"given_back,omitempty"`
	// Unable are the processes that cannot carry out an attempt: see Lease.Unable.
	Unable note `json:"unable,omitzero"`
	// Busy is the delivery of an attempt at which another replica was at work: see Lease.WasBusy.
	Busy delivery `json:"busy,omitzero"`
	// Killed are the processes that were killed during an attempt, whichever claim of it: see
	// Leases.NoteKilled.
	Killed note `json:"killed,omitzero"`
}

// note names processes, each by its replica and its life, and the attempt that it is about.
type note struct {
	Of string   `json:"of"`
	By []string `json:"by"`
}

// delivery is one of an attempt's command; the zero value is none.
type delivery struct {
	Of     string `json:"of"`
	Number int    `json:"number"`
}

// IsZero reports whether nothing is noted.
func (n note) IsZero() bool { return len(n.By) == 0 }

// with returns the note about an attempt with further processes, and without
// those of another attempt.
func (n note) with(of string, by ...string) note {
	all := note{Of: of}
	if n.Of == of {
		all.By = slices.Clone(n.By)
	}
	for _, name := range by {
		if !slices.Contains(all.By, name) && len(all.By) < maxNoted {
			all.By = append(all.By, name)
		}
	}
	return all
}

// numberOf names an attempt whichever claim it is.
func numberOf(a forge.Attempt) string { return fmt.Sprintf("%s/%d", a.Step, a.Number) }

// Name names the process among all lives of all replicas.
func (h LeaseHolder) Name() string { return string(h.Replica) + " " + h.Life }

// about returns those of the notes that are about an attempt.
func (n *notes) about(attempt, number string) notes {
	about := notes{Unable: n.Unable.with(attempt), Killed: n.Killed.with(number)}
	if attempt != "" && n.GivenBack == attempt {
		about.GivenBack = attempt
	}
	if attempt != "" && n.Busy.Of == attempt {
		about.Busy = n.Busy
	}
	return about
}

// released returns the message of a free lease, with its notes, and after how long the server may
// forget it.
func (n *notes) released() ([]byte, time.Duration) {
	if n.GivenBack == "" && n.Unable.IsZero() && n.Busy == (delivery{}) && n.Killed.IsZero() {
		return []byte("{}"), time.Second
	}
	data, err := json.Marshal(leaseRecord{notes: *n})
	if err != nil {
		return []byte("{}"), time.Second
	}
	return data, noteTTL
}

// GivenBack reports whether a holder has given the attempt back before, as
// GiveBack says.
func (l *Lease) GivenBack() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.record.GivenBack != ""
}

// GiveBack notes that the attempt failed for a reason that may be the replica's,
// for whoever holds the lease next for the same attempt. Release tells it.
func (l *Lease) GiveBack() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.record.GivenBack = l.attempt
}

// Unable notes that the holder cannot carry out the attempt, for Unasked. Release tells it.
func (l *Lease) Unable() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.record.Unable = l.record.Unable.with(l.attempt, l.record.holder().Name())
}

// holder returns who has the lease.
func (r *leaseRecord) holder() LeaseHolder {
	return LeaseHolder{Replica: r.Replica, Group: r.Group, Life: r.Life}
}

// Unasked returns a replica that shares the holder's commands, is at work on the
// same step of something else, and has not said that it is Unable to carry out this attempt;
// empty if there is none. What a replica that is at work lacks is known only once it was given
// the command.
func (l *Lease) Unasked(ctx context.Context) (forge.ReplicaID, error) {
	step, _, err := subjects.ParseLease(l.subject)
	if err != nil {
		return "", fmt.Errorf("look who is at work: %w", err)
	}
	filter, err := subjects.LeasesOf(step)
	if err != nil {
		return "", fmt.Errorf("look who is at work: %w", err)
	}
	found, err := l.leases.conn.Lasts(ctx, streams.Leases, filter)
	if err != nil {
		return "", fmt.Errorf("look who is at work: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range found {
		var r leaseRecord
		if m.Subject == l.subject || json.Unmarshal(m.Data, &r) != nil || r.Replica == "" {
			continue
		}
		if r.Replica != l.record.Replica && r.Group == l.record.Group && !slices.Contains(l.record.Unable.By, r.holder().Name()) {
			return r.Replica, nil
		}
	}
	return "", nil
}

// Busy returns the newest delivery of the attempt at which a holder noted WasBusy; 0 if none did.
func (l *Lease) Busy() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.record.Busy.Number
}

// WasBusy notes at which delivery of the attempt a replica was at work that may take it, so that
// this one has the time to do so once it is free. Release tells it.
func (l *Lease) WasBusy(number int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.record.Busy = delivery{l.attempt, number}
}

// Killed returns the names of the processes that were killed during the attempt.
func (l *Lease) Killed() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.record.Killed.By)
}

// NoteKilled notes, for whoever carries out an attempt next, by which names the processes are
// known that were killed during it, and has the server deliver its command at once if a process
// that the holder replaces had taken it. While another replica is at it, the error is
// ErrLeaseTaken, and nothing is noted.
func (ls *Leases) NoteKilled(ctx context.Context, to forge.Key, a forge.Attempt, h LeaseHolder, names ...string) error {
	subject, err := subjects.Lease(to, a.Task, a.Step)
	if err != nil {
		return fmt.Errorf("note who was killed: %w", err)
	}
	l := &Lease{leases: ls, subject: subject}
	r, err := l.read(ctx)
	if err == nil && !r.isFree(h) {
		err = ErrLeaseTaken
	}
	if err != nil {
		return fmt.Errorf("note who was killed: %w", err)
	}
	l.record.notes = r.about(a.String(), numberOf(a))
	l.record.Killed = l.record.Killed.with(numberOf(a), names...)
	data, ttl := l.record.released()
	if err := l.publish(ctx, data, ttl); err != nil {
		return fmt.Errorf("note who was killed: %w", err)
	}
	if !r.isFormerLife(h) {
		return nil
	}
	return ls.deliverAgain(&r)
}
