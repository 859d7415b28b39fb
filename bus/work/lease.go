package work

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/internal/conn"
	"github.com/pfl-forge/pfl-forge/bus/internal/streams"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
)

const (
	// leaseTTL is after how long the server forgets a lease that is not renewed.
	leaseTTL = 30 * time.Second
	// LeaseRenewal is how often a holder renews it, at the least.
	LeaseRenewal = 5 * time.Second
	// LeaseGrace is how long a holder goes on after the last renewal that the
	// server confirmed. It is less than leaseTTL, so the agents that the holder
	// started have ended before another replica begins.
	LeaseGrace = 24 * time.Second
	// leasePoll is the interval at which a replica that waits for a lease
	// looks.
	leasePoll = 500 * time.Millisecond
	// noteTTL is how long the notes of a free lease are known.
	noteTTL = time.Hour
)

// ErrLeaseLost says that another replica may do what a lease was for, because its
// holder was cut off for too long.
var ErrLeaseLost = errors.New("cut off for too long: another replica may have taken over")

// ErrLeaseTaken says that another replica has a lease.
var ErrLeaseTaken = errors.New("another replica is at it")

// LeaseHolder identifies one process of a replica.
type LeaseHolder struct {
	Replica forge.ReplicaID
	// Group is that of the replicas that share its commands; empty: those without one.
	Group subjects.Group
	// Life differs from start to start of the process.
	Life string
}

// Lease is the right to work on a task, or on the analysis of an intent: while one
// replica has it, no other one begins. It is safe for concurrent use.
type Lease struct {
	leases  *Leases
	subject string
	// record is the lease as this holder writes it, and data its bytes.
	record leaseRecord
	data   []byte
	// attempt is the one that it was taken for, and number the same whichever claim it is.
	attempt, number string

	mu sync.Mutex
	// seq is the sequence of the lease's last message; a write needs it to be
	// the newest.
	seq uint64
	// renewed is the time at which the last renewal that was confirmed was
	// sent, not answered: the server counts from a moment after it.
	renewed time.Time
	// lost is set for good once the lease may have gone elsewhere, or was
	// released.
	lost bool
}

// leaseRecord is the message that a lease consists of. A released one has no replica.
type leaseRecord struct {
	notes

	Replica forge.ReplicaID `json:"replica,omitempty"`
	Life    string          `json:"life,omitempty"`
	Group   subjects.Group  `json:"group,omitempty"`
	// Ack is the subject on which the server is told about the command.
	// HandBack uses it.
	Ack string `json:"ack,omitempty"`
	// Taken differs from one Acquire to the next: a lease whose confirmation got lost is
	// known by it.
	Taken string `json:"taken,omitempty"`
}

// Leases gives out the right to work on a task to one replica at a time.
type Leases struct {
	conn *conn.Conn
}

// NewLeases returns the Leases of a connection.
func NewLeases(c *conn.Conn) *Leases {
	return &Leases{conn: c}
}

// Acquire waits until the lease is free on the task and step of a command,
// whichever attempt it is of, and takes it. A lease of the holder's replica
// from before its restart counts as free: its agents have ended before this one
// began. The caller starts Keep at once, and ends with Release.
func (ls *Leases) Acquire(ctx context.Context, job *Job, h LeaseHolder) (*Lease, error) {
	return ls.ofJob(ctx, job, h, true)
}

// TryAcquire is Acquire that does not wait: if the lease is not free, the error is ErrLeaseTaken.
func (ls *Leases) TryAcquire(ctx context.Context, job *Job, h LeaseHolder) (*Lease, error) {
	return ls.ofJob(ctx, job, h, false)
}

// ofJob acquires the lease of a command.
func (ls *Leases) ofJob(ctx context.Context, job *Job, h LeaseHolder, wait bool) (*Lease, error) {
	cmd := &job.Command
	subject, err := subjects.Lease(cmd.To, cmd.Attempt.Task, cmd.Attempt.Step)
	if err != nil {
		return nil, fmt.Errorf("acquire lease: %w", err)
	}
	l := &Lease{leases: ls, subject: subject, record: leaseRecord{Ack: job.ack}, attempt: cmd.Attempt.String(), number: numberOf(cmd.Attempt)}
	return acquire(ctx, l, h, wait)
}

// AcquireWatch is Acquire for a gateway that is to watch a forge.
func (ls *Leases) AcquireWatch(ctx context.Context, forgeName string, h LeaseHolder) (*Lease, error) {
	subject, err := subjects.Watch(forgeName)
	if err != nil {
		return nil, fmt.Errorf("acquire lease: %w", err)
	}
	return acquire(ctx, &Lease{leases: ls, subject: subject}, h, true)
}

// acquire takes a lease when it is free, and returns it. Unless it is to wait
// for that, it looks once.
func acquire(ctx context.Context, l *Lease, h LeaseHolder, wait bool) (*Lease, error) {
	l.record.Replica, l.record.Group, l.record.Life, l.record.Taken = h.Replica, h.Group, h.Life, nuid.Next()
	for {
		free, err := l.look(ctx, h)
		if err == nil && free {
			if l.data, err = json.Marshal(l.record); err == nil {
				err = l.publish(ctx, l.data, leaseTTL)
			}
			if err == nil {
				return l, nil
			}
			if unanswered(ctx, err) { // it may be written all the same, and is then known as its own
				continue
			}
			if refused, _ := conn.WrongSequence(err); refused { // somebody was faster
				err = nil
			}
		}
		switch {
		case err != nil:
		case !wait:
			err = ErrLeaseTaken
		default:
			err = conn.Sleep(ctx, leasePoll)
		}
		if err != nil {
			return nil, fmt.Errorf("acquire lease: %w", err)
		}
	}
}

// unanswered reports whether a request that failed may have been granted: its answer did
// not come, and the caller has not stopped waiting.
func unanswered(ctx context.Context, err error) bool {
	return ctx.Err() == nil && (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled))
}

// look notes the sequence of the last message and what replicas noted in it, and reports whether
// the lease is free, or is this one.
func (l *Lease) look(ctx context.Context, h LeaseHolder) (bool, error) {
	r, err := l.read(ctx)
	if err != nil {
		return false, err
	}
	l.record.notes = r.about(l.attempt, l.number)
	mine := r.Taken != "" && r.Taken == l.record.Taken
	return mine || r.isFree(h), nil
}

// read returns the last message, and notes its sequence. Where there is none, or it cannot be
// read and so not be renewed, the record is empty.
func (l *Lease) read(ctx context.Context) (leaseRecord, error) {
	m, err := l.leases.conn.Last(ctx, streams.Leases, l.subject)
	if errors.Is(err, conn.ErrNotFound) {
		l.seq = 0
		return leaseRecord{}, nil
	}
	if err != nil {
		return leaseRecord{}, err
	}
	l.seq = m.Seq
	var r leaseRecord
	if json.Unmarshal(m.Data, &r) != nil {
		return leaseRecord{}, nil //nolint:nilerr // as said
	}
	return r, nil
}

// isFree reports whether a holder may take the lease: none has it, or a process that it replaces.
func (r *leaseRecord) isFree(h LeaseHolder) bool {
	return r.Replica == "" || r.isFormerLife(h)
}

// isFormerLife reports whether a process that the holder's own has replaced has the lease.
func (r *leaseRecord) isFormerLife(h LeaseHolder) bool {
	return r.Replica != "" && r.Replica == h.Replica && r.Life != h.Life
}

// publish writes the lease if its last message is still the known one.
func (l *Lease) publish(ctx context.Context, data []byte, ttl time.Duration) error {
	ctx, cancel := conn.Awaiting(ctx, l.leases.conn, conn.RequestTimeout)
	defer cancel()
	m := nats.NewMsg(l.subject)
	m.Data = data
	m.Header.Set(jetstream.ExpectedLastSubjSeqHeader, strconv.FormatUint(l.seq, 10))
	sent := time.Now()
	ack, err := l.leases.conn.JS.PublishMsg(ctx, m, jetstream.WithMsgTTL(ttl))
	if err == nil {
		l.seq, l.renewed = ack.Sequence, sent
	}
	return err
}

// Held returns ErrLeaseLost if the lease may have gone to another replica. The
// holder calls it before every effect that others see. It asks nothing of the
// server: the clock decides.
func (l *Lease) Held() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost || time.Since(l.renewed) > LeaseGrace {
		l.lost = true
		return ErrLeaseLost
	}
	return nil
}

// Keep renews the lease now and then until ctx ends, and returns ErrLeaseLost if that did not
// succeed for LeaseGrace, or another replica has it.
func (l *Lease) Keep(ctx context.Context, every time.Duration) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		err := l.renew(ctx)
		if lost := l.Held(); lost != nil {
			return errors.Join(lost, err)
		}
		if err != nil && ctx.Err() == nil {
			l.leases.conn.Log.WarnContext(ctx, "cannot renew a lease; trying again", "lease", l.subject, "error", err)
		}
	}
}

// renew writes the lease again. If it is not the known one any more, it looks:
// a lease that another replica has is lost; one that the server has lost, or
// whose confirmation was, is written.
func (l *Lease) renew(ctx context.Context) error {
	if err := l.Held(); err != nil { // this process may have been stopped for long
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	ctx, cancel := context.WithDeadline(ctx, l.renewed.Add(LeaseGrace))
	defer cancel()
	err := l.publish(ctx, l.data, leaseTTL)
	refused, _ := conn.WrongSequence(err)
	if !refused {
		return err
	}
	m, err := l.leases.conn.Last(ctx, streams.Leases, l.subject)
	switch {
	case errors.Is(err, conn.ErrNotFound): // the server has lost it
		l.seq = 0
	case err != nil:
		return err
	case string(m.Data) != string(l.data):
		l.lost = true
		return ErrLeaseLost
	default: // its confirmation got lost
		l.seq = m.Seq
	}
	return l.publish(ctx, l.data, leaseTTL)
}

// Release gives the lease back. Without it, others have to wait for its end. It
// may be called again.
func (l *Lease) Release(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost {
		return
	}
	l.lost = true
	data, ttl := l.record.released()
	if err := l.publish(ctx, data, ttl); err != nil {
		l.leases.conn.Log.DebugContext(ctx, "cannot release a lease; it ends by itself", "lease", l.subject, "error", err)
	}
}

// HandBack has the server deliver the commands again that a replica had taken
// before it restarted, at once instead of when it finds out by itself, and frees their
// leases: what the replica ran before has ended. It finds those commands in the leases of
// the replica.
func (ls *Leases) HandBack(ctx context.Context, h LeaseHolder, steps ...forge.Step) error {
	for _, step := range steps {
		filter, err := subjects.LeasesOf(step)
		if err != nil {
			return fmt.Errorf("hand commands back: %w", err)
		}
		found, err := ls.conn.Lasts(ctx, streams.Leases, filter)
		if err != nil {
			return fmt.Errorf("hand commands back: %w", err)
		}
		for _, m := range found {
			var r leaseRecord
			if json.Unmarshal(m.Data, &r) != nil || !r.isFormerLife(h) || !isAck(r.Ack) {
				continue
			}
			// Free first: whoever gets the command does not wait for the end of the lease.
			(&Lease{leases: ls, subject: m.Subject, seq: m.Seq, record: leaseRecord{notes: r.notes}}).Release(ctx)
			if err := ls.deliverAgain(&r); err != nil {
				return fmt.Errorf("hand commands back: %w", err)
			}
		}
	}
	return nil
}

// deliverAgain has the server deliver the command at once whose lease a record is.
func (ls *Leases) deliverAgain(r *leaseRecord) error {
	if !isAck(r.Ack) {
		return nil
	}
	return ls.conn.NC.Publish(r.Ack, []byte("-NAK"))
}

// AtWork returns the intents of a project on which some replica works just now, or did a
// moment ago, each with a step of that work.
func (ls *Leases) AtWork(ctx context.Context, project forge.ProjectID) (map[forge.IntentID]forge.Step, error) {
	filter, err := subjects.LeasesIn(project)
	if err != nil {
		return nil, fmt.Errorf("look for leases: %w", err)
	}
	found, err := ls.conn.Lasts(ctx, streams.Leases, filter)
	if err != nil {
		return nil, fmt.Errorf("look for leases: %w", err)
	}
	at := map[forge.IntentID]forge.Step{}
	for _, m := range found {
		var r leaseRecord
		if json.Unmarshal(m.Data, &r) != nil || r.Replica == "" {
			continue
		}
		if step, of, err := subjects.ParseLease(m.Subject); err == nil {
			at[of.Intent] = step
		}
	}
	return at, nil
}

// isAck reports whether a subject is one on which the server is told about a
// command. A lease might name any other.
func isAck(s string) bool {
	return strings.HasPrefix(s, "$JS.ACK.") && strings.Contains(s, "."+streams.Commands+".")
}
