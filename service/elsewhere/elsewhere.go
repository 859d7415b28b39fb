// Package elsewhere knows when a replica leaves a command to another one of its service, although it is ready for work: where an
// attempt failed for a reason of the replica, which is not the task's.
//
//	an attempt ends with                        what follows here
//	a cause that lasts: no such program, ...    left to others for as long as Patience allows, then answered
//	a cause that may be the task's own          left to others once, then answered
//	an answer that may be the replica's         the next attempt of the step is left to others for a moment
//
// Nothing of it is stored: what a process knows ends with it, and whoever is given a command for long enough begins it, so that
// none waits for a replica that is not there.
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
	// Patience is how long a command goes round before it is answered that no replica can do it. A person need not hear of less.
	Patience = 15 * time.Second
	// most is the number of deliveries after which a command that was left to others is answered: by Pause that is Patience, about.
	most = 8
	// aMoment is the number of deliveries for which the next attempt is left to others.
	aMoment = 4
	// firstPause and longestPause bound Pause.
	firstPause   = 250 * time.Millisecond
	longestPause = 5 * time.Second
	// memory is how long it is known where an attempt failed, and maxMemory how many of them are.
	memory    = 10 * time.Minute
	maxMemory = 10_000
)

// places are the reasons of failures that may lie in the replica. Programs that crash are not among them, since
// they run, and neither is a pod that is lost, which is elsewhere.
var places = []forge.FailureReason{
	forge.FailRepository, forge.FailMissingCLI, forge.FailCLITooOld, forge.FailSandbox, forge.FailReplica,
}

// Pause returns after how long a command is delivered again that was left to another replica at that delivery, which counts from 1.
func Pause(delivery int) time.Duration {
	return min(firstPause<<min(max(delivery-1, 0), 10), longestPause)
}

// heardKey is the context key of what NotHere says.
type heardKey struct{}

// Heard keeps the words of NotHere about an attempt. It is safe for concurrent use; a nil one has heard nothing.
type Heard struct {
	mu    sync.Mutex
	why   error
	lasts bool
}

// Listen returns the context of an attempt, and the words of NotHere in it.
func Listen(ctx context.Context) (context.Context, *Heard) {
	h := &Heard{}
	return context.WithValue(ctx, heardKey{}, h), h
}

// Listens reports whether there may be other replicas, and so whether NotHere is heard.
func Listens(ctx context.Context) bool { return ctx.Value(heardKey{}) != nil }

// NotHere says that the attempt of ctx failed for a reason of this replica, so that another one may succeed. A cause that
// lasts is of the replica for sure, and the attempt has done nothing. Any other may be the task's own, such as processes of it
// that leave no room for more: where another replica fails as well, it is taken for that.
func NotHere(ctx context.Context, why error, lasts bool) {
	h, ok := ctx.Value(heardKey{}).(*Heard)
	if !ok {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.why, h.lasts = why, lasts
}

// Leave returns why an attempt that failed is left to another replica, at its present delivery; nil: its failure counts. The failure of one
// that is not left any more, and has done nothing, becomes forge.FailReplica where it would be for a person to mend here. A step of a project
// is left for as long as the reason lasts: no rule waits for a replica with it.
func (h *Heard) Leave(delivery int, step forge.Step, f *forge.Failure) error {
	if h == nil || f == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	bound := 2
	if h.lasts {
		bound = most
	}
	switch {
	case h.why == nil:
	case delivery < bound || h.lasts && step.OfProject():
		return fmt.Errorf("left to another replica: %w", h.why)
	case h.lasts && slices.Contains([]forge.FailureReason{forge.FailMissingCLI, forge.FailCLITooOld}, f.Reason):
		f.Reason = forge.FailReplica
	}
	return nil
}

// step identifies the attempts that follow one another.
type step struct {
	to   forge.Key
	task forge.TaskID
	step forge.Step
}

// Memory lists the steps that failed at this replica. The zero value is empty. It is safe for concurrent use.
type Memory struct {
	mu     sync.Mutex
	failed map[step]time.Time
}

// Note takes how an attempt ended here, at a time; nil: it did not fail.
func (m *Memory) Note(cmd *forge.Command, f *forge.Failure, now time.Time) {
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

// Avoid returns why a command is left to others for a moment: the attempt before it failed here. Of one that is for this replica alone
// that is not asked.
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

// Begins reports whether a command is begun here although a hook had rather left it to others: it went round for long enough.
func Begins(delivery int) bool { return delivery >= most }

// Answers reports whether a command that no replica takes is answered after a time, so that people see why it waits. The steps of a project
// are not: they have no intent whose status would say it.
func Answers(cmd *forge.Command, delivery int, waited time.Duration) bool {
	return delivery >= most && waited >= Patience && !cmd.Attempt.Step.OfProject() && cmd.Attempt.Step != forge.StepMerge
}
