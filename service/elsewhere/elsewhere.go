// Package elsewhere knows when a replica leaves a command to another one of its
// service, although it is ready for work: where an attempt failed for a reason
// of the replica, which is not the task's.
//
//	an attempt ends with                        what follows here
//	a cause that lasts: no such program, ...    left to others for as long as the command's Patience, then answered
//	a cause that may be the task's own          left to others once, then answered
//	an answer that may be the replica's         the next attempt of the step is left to others for a moment
//
// That an attempt was left to others once is noted in its lease. Nothing else is
// stored: what a process knows ends with it, and whoever is given a command for
// long enough begins it, so that none waits for a replica that is not there.
package elsewhere

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
)

const (
	// Patience is for how long a command goes round that says nothing of it
	// (forge.Command.Patience).
	Patience = 15 * time.Second
	// most is the number of deliveries that a command takes at least before it
	// is answered that no replica can do it: by Pause, those of Patience.
	most = 8
	// aMoment is the number of deliveries for which the next attempt is left to others.
	aMoment = 4
	// firstPause and longestPause bound Pause, and hold bounds Hold.
	firstPause   = 250 * time.Millisecond
	longestPause = time.Minute
	hold         = time.Second
	// memory is how long it is known where an attempt failed, and maxMemory how many of them are.
	memory    = 10 * time.Minute
	maxMemory = 10_000
)

// places are the reasons of failures that may lie in the replica. Programs that crash are
// not among them, since they run, and neither is a pod that is lost, which is elsewhere.
var places = []forge.FailureReason{
	forge.FailRepository, forge.FailMissingCLI, forge.FailCLITooOld, forge.FailSandbox, forge.FailUnwell,
}

// lacking are those of them that say what a replica lacks, for a person to bring there.
var lacking = []forge.FailureReason{forge.FailMissingCLI, forge.FailCLITooOld, forge.FailSandbox}

// Lacks reports whether a reason of a failure says what its replica lacks.
func Lacks(r forge.FailureReason) bool { return slices.Contains(lacking, r) }

// Round says how a command has gone round so far.
type Round struct {
	// Delivery counts from 1.
	Delivery int
	// Waited is the time since it was issued.
	Waited time.Duration
	// GivenBack says that its attempt was left to others once already for a
	// cause that may be the task's own.
	GivenBack bool
	// Busy is the newest delivery at which a replica was at work on something else that was not
	// given the command yet; 0: there was none. Such a one may take it once it is free.
	Busy int
}

// patience returns how long a command goes round: at least so long where others are to be asked.
func patience(cmd *forge.Command) time.Duration {
	if cmd.Patience > 0 {
		return cmd.Patience
	}
	return Patience
}

// Pause returns after how long a command is delivered again that was left to
// another replica at that delivery, which counts from 1. One that waits for
// long is tried less often, since each try costs a replica something.
func Pause(cmd *forge.Command, delivery int) time.Duration {
	return min(firstPause<<min(max(delivery-1, 0), 10), patience(cmd)/3, longestPause)
}

// Hold returns for how long a replica that can do no work keeps a command
// before it gives it back, which costs nothing.
func Hold(cmd *forge.Command) time.Duration { return min(hold, patience(cmd)/most) }

// BeginsAfter returns after how long a replica that has begun a command says
// so, since the rules think that none can do it: what it lacks would have shown
// by then. 0: none has answered so of this step.
func BeginsAfter(cmd *forge.Command) time.Duration {
	if cmd.Patience <= Patience {
		return 0
	}
	return min(Patience, cmd.Patience/most)
}

// ReportBegun calls a function after BeginsAfter, unless ctx ends before. Its
// error changes nothing: the result follows.
func ReportBegun(ctx context.Context, cmd *forge.Command, tell func(context.Context) error) {
	after := BeginsAfter(cmd)
	if after == 0 {
		return
	}
	timer := time.NewTimer(after)
	defer timer.Stop()
	select {
	case <-timer.C:
		_ = tell(ctx)
	case <-ctx.Done():
	}
}

// causesKey is the context key of what NotHere says.
type causesKey struct{}

// Causes keeps the words of NotHere about an attempt. It is safe for concurrent
// use; a nil one has none.
type Causes struct {
	// unwell returns why the replica can do no work; nil if it can.
	unwell func(context.Context) error

	mu    sync.Mutex
	why   error
	lasts bool
}

// Listen returns the context of an attempt, and the words of NotHere in it.
// unwell returns why the replica can do no work now; nil if it can.
func Listen(ctx context.Context, unwell func(context.Context) error) (context.Context, *Causes) {
	h := &Causes{unwell: unwell}
	return context.WithValue(ctx, causesKey{}, h), h
}

// Unwell returns why the replica of an attempt can do no work now, so that the
// attempt is handed back when it ends, whatever it found; nil if it can.
func Unwell(ctx context.Context) error {
	h, ok := ctx.Value(causesKey{}).(*Causes)
	if !ok || h.unwell == nil {
		return nil
	}
	return h.unwell(ctx)
}

// Listens reports whether there may be other replicas, and so whether NotHere is heard.
func Listens(ctx context.Context) bool { return ctx.Value(causesKey{}) != nil }

// NotHere says that the attempt of ctx failed for a reason of this replica, so that
// another one may succeed. A cause that lasts is of the replica for sure, and the attempt
// has done nothing. Any other may be the task's own, such as processes of it that leave
// no room for more: where another replica fails as well, it is taken for that.
func NotHere(ctx context.Context, why error, lasts bool) {
	h, ok := ctx.Value(causesKey{}).(*Causes)
	if !ok {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.why, h.lasts = why, lasts
}

// Leave returns why an attempt that failed is left to another replica; nil: its failure
// counts. The failure of one that none can do, and that has done nothing, becomes
// forge.FailReplica where a person would have to bring something to the replicas. A step of
// a project is left for as long as the reason lasts: no rule waits for a replica with it.
func (h *Causes) Leave(cmd *forge.Command, r Round, f *forge.Failure) error {
	if h == nil || f == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.why == nil:
	case !h.lasts && r.GivenBack:
	case h.lasts && Answers(cmd, r):
		if Lacks(f.Reason) {
			f.Reason = forge.FailReplica
		}
	case h.lasts && cmd.Patience == 0 && r.Delivery >= most && !cmd.Attempt.Step.OfProject(): // no rule of then knows the reason
	default:
		return fmt.Errorf("left to another replica: %w", h.why)
	}
	return nil
}

// Why returns the reason of this replica for which an attempt failed; nil: none was found.
func (h *Causes) Why() error {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.why
}

// Once reports whether an attempt that Leave left to others is not left to them a second time.
func (h *Causes) Once() bool {
	if h == nil {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.why != nil && !h.lasts
}

// step identifies the attempts that follow one another.
type step struct {
	to   forge.Key
	task forge.TaskID
	step forge.Step
}

// Memory lists the steps that failed at this replica. The zero value is empty.
// It is safe for concurrent use.
type Memory struct {
	mu     sync.Mutex
	failed map[step]time.Time
}

// Record takes how an attempt ended here, at a time; nil: it did not fail.
func (m *Memory) Record(cmd *forge.Command, f *forge.Failure, now time.Time) {
	key := step{cmd.To, cmd.Attempt.Task, cmd.Attempt.Step}
	m.mu.Lock()
	defer m.mu.Unlock()
	if f == nil || !slices.Contains(places, f.Reason) {
		delete(m.failed, key)
		return
	}
	if m.failed == nil || len(m.failed) >= maxMemory {
		m.failed = map[step]time.Time{}
	}
	m.failed[key] = now
}

// Unwell is Record for an attempt that was paid for and failed while this replica could do no work,
// and returns the failure that says so. To rules that do not know that reason it was interrupted.
func (m *Memory) Unwell(cmd *forge.Command, why error, now time.Time) *forge.Failure {
	f := &forge.Failure{Reason: forge.FailUnwell, Message: why.Error()}
	m.Record(cmd, f, now)
	if cmd.Patience == 0 {
		f.Reason = forge.FailInterrupted
	}
	return f
}

// Avoid returns why a command is left to others for a moment: the attempt before
// it failed here. Of one that is for this replica alone that is not asked.
func (m *Memory) Avoid(cmd *forge.Command, delivery int, now time.Time) error {
	if delivery > aMoment || cmd.Replica != "" {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	at, failed := m.failed[step{cmd.To, cmd.Attempt.Task, cmd.Attempt.Step}]
	if !failed || now.Sub(at) > memory {
		return nil
	}
	return fmt.Errorf("left to another replica: the attempt before it failed here at %s", at.UTC().Format("15:04:05 MST"))
}

// Begins reports whether a command is begun here although a hook had rather
// left it to others: it went round for long enough.
func Begins(delivery int) bool { return delivery >= most }

// Answers reports whether a command that no replica takes is answered with forge.FailReplica, so
// that people see why it waits: one whose rules know that reason, which they say by its Patience. A
// replica that was busy has had the time to take it since.
func Answers(cmd *forge.Command, r Round) bool {
	return cmd.Patience > 0 && r.Delivery-r.Busy >= most && r.Waited >= cmd.Patience && !cmd.Attempt.Step.OfProject()
}
