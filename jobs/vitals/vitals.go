// Package vitals knows what a replica cannot do at present, beside keeping files:
// start processes, run git, make sandboxes, or reach an origin that others reach.
//
//	         an attempt fails by it, and so does a probe          a probe succeeds
//	can -----------------------------------------------> cannot ----------------------> can
//	                                                     |    ^
//	                                                     +----+ a probe fails: the next comes later
//
// Nothing is probed before an attempt has failed by it: a replica that works is not
// looked at. What the failed attempt was told is no proof, since its own processes may
// have been the cause. So the first probe is made after they have ended, and decides.
package vitals

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pfl-forge/pfl-forge/internal/retry"
)

// probeTime bounds one probe: what does not answer for so long does not work.
const probeTime = 20 * time.Second

// Ability is something that every command needs, or those that Partial names.
type Ability struct {
	// Name tells it from others, for people: such as "processes".
	Name string
	// Partial says that a replica without it takes what does not need it.
	Partial bool
	// Probe returns nil if the replica has it now.
	Probe func(context.Context) error
}

// Vitals lists the abilities that a replica lacks. It is safe for concurrent use.
type Vitals struct {
	log *slog.Logger
	// life ends the probes.
	life context.Context //nolint:containedctx // of the process
	end  context.CancelFunc
	// pace is that of the probes of one ability.
	pace retry.Pace

	mu      sync.Mutex
	lacking map[string]*lack
	probes  sync.WaitGroup
}

// lack is an ability that is probed.
type lack struct {
	Ability
	// known is closed when the first probe has ended.
	known chan struct{}
	// err is why the newest probe failed; nil before the first has ended.
	err error
}

// New returns the Vitals of a replica that lacks nothing as far as it knows. Close ends its probes.
func New(log *slog.Logger) *Vitals {
	v := &Vitals{log: log, lacking: map[string]*lack{}, pace: retry.Pace{First: 500 * time.Millisecond, Most: 10 * time.Second}}
	v.life, v.end = context.WithCancel(context.Background())
	return v
}

// Close ends the probes, and returns when none runs.
func (v *Vitals) Close() {
	v.end()
	v.probes.Wait()
}

// Suspect probes an ability, and returns why the replica lacks it; nil if it
// has it. One that it lacks is probed until it has it again, and at most one
// probe of an ability is under way. An end of ctx is an answer of nothing.
func (v *Vitals) Suspect(ctx context.Context, a Ability) error {
	v.mu.Lock()
	l := v.lacking[a.Name]
	if l == nil && v.life.Err() == nil {
		l = &lack{Ability: a, known: make(chan struct{})}
		v.lacking[a.Name] = l
		v.probes.Go(func() { v.watch(l) })
	}
	v.mu.Unlock()
	if l == nil {
		return nil
	}
	select {
	case <-l.known:
		v.mu.Lock()
		defer v.mu.Unlock()
		return l.err
	case <-ctx.Done():
		return nil
	}
}

// watch probes an ability until the replica has it.
func (v *Vitals) watch(l *lack) {
	pace := v.pace
	for first := true; ; first = false {
		err := v.probe(l)
		if v.life.Err() != nil {
			err = nil
		}
		v.mu.Lock()
		l.err = err
		if err == nil {
			delete(v.lacking, l.Name)
		}
		v.mu.Unlock()
		if first {
			close(l.known)
		}
		switch {
		case err == nil && !first && v.life.Err() == nil:
			v.log.Info("this replica can work again", "ability", l.Name)
			return
		case err == nil:
			return
		case first:
			v.log.Warn("this replica is not ready: it lacks what others may have", "ability", l.Name, "error", err)
		}
		_ = pace.Sleep(v.life)
	}
}

// probe probes once.
func (v *Vitals) probe(l *lack) error {
	ctx, cancel := context.WithTimeout(v.life, probeTime)
	defer cancel()
	if err := l.Probe(ctx); err != nil {
		return fmt.Errorf("%s: %w", l.Name, err)
	}
	return nil
}

// Unwell returns why the replica can do no work at all; nil if it can do some.
func (v *Vitals) Unwell() error { return v.lacks(func(l *lack) bool { return !l.Partial }) }

// Check is a condition of readiness: nil if the replica lacks nothing.
func (v *Vitals) Check(context.Context) error { return v.lacks(func(*lack) bool { return true }) }

// LacksBut is Check without the abilities whose names begin with a text.
func (v *Vitals) LacksBut(prefix string) error {
	return v.lacks(func(l *lack) bool { return !strings.HasPrefix(l.Name, prefix) })
}

// Lacks returns why the replica does not have one ability; nil if it has it.
func (v *Vitals) Lacks(name string) error {
	return v.lacks(func(l *lack) bool { return l.Name == name })
}

// lacks returns an error for each ability that is lacking and of a kind, in the
// order of their names.
func (v *Vitals) lacks(of func(*lack) bool) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	var list []error
	for _, l := range v.lacking {
		if l.err != nil && of(l) {
			list = append(list, l.err)
		}
	}
	slices.SortFunc(list, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(list...)
}
