package facts

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
)

const (
	// told is the patience of a command of which a person hears: two answers in
	// a row said that no replica can do its step.
	told = time.Minute
	// mostPatient is the longest patience of a command.
	mostPatient = 15 * time.Minute
	// mostUnwell is how many attempts in a row may be paid for that replicas
	// end which are not well.
	mostUnwell = 3
)

// Replicas is read from an intent's journal: which of its steps wait for a replica that can do
// them, which attempts replicas ended that were not well, and whether the project was told.
type Replicas struct {
	// keeps says that the project has said which obstacles it knows of. Others are told nothing.
	keeps bool
	// told says that the project was told that a step waits.
	told bool
	// patience is that of each command, until a replica says that it has begun.
	patience map[forge.Attempt]time.Duration
	// unwell counts the attempts of each step since the last one that did its job.
	unwell map[step]int
}

// step is one of a task, or of the whole intent.
type step struct {
	task forge.TaskID
	step forge.Step
}

// stepOf returns the step of an attempt.
func stepOf(a forge.Attempt) step { return step{a.Task, a.Step} }

// Check returns an error if a step that no replica can do is not asked for again at
// once, with more patience; if people are not told once it waits for long, or are
// still told when it does not any more; or if a step is paid for again and again
// that replicas end which are not well. Two says that two changes may be made for a
// task. Of several events that were decided together the order is not known.
func (r *Replicas) Check(rec *forge.Record, two bool) error {
	if r.patience == nil {
		r.patience, r.unwell = map[forge.Attempt]time.Duration{}, map[step]int{}
	}
	for i := range rec.Events {
		if m := forge.As[*forge.RunAdmitted](rec.Events[i].Message); m != nil && m.Obstacles != nil {
			r.keeps = true
		}
	}
	if len(rec.Events) > 1 {
		clear(r.unwell)
		return r.issued(rec, nil)
	}
	return r.follow(rec, two)
}

// follow is Check for a record of one event.
func (r *Replicas) follow(rec *forge.Record, two bool) error {
	var failed *forge.Result // that counts, and says that no replica can do it
	switch m := rec.Events[0].Message.(type) {
	case *forge.Result:
		_, open := r.patience[m.Attempt]
		switch f := m.Failure(); {
		case !open || m.IsStart():
		case f == nil && m.Attempt.Task == "":
			clear(r.unwell) // there may be other tasks now
		case f == nil:
			delete(r.unwell, stepOf(m.Attempt))
		case f.Reason == forge.FailReplica:
			failed = m
		case f.Reason == forge.FailUnwell:
			r.unwell[stepOf(m.Attempt)]++
		case f.Reason == forge.FailKilledReplica: // which was made as often before it is told
			r.unwell[stepOf(m.Attempt)] = mostUnwell
		}
		if err := r.paid(rec, m, open && !two); err != nil {
			return err
		}
	case *forge.Resume, *forge.Retry, *forge.Edit, *forge.RunAdmitted:
		clear(r.unwell)
	default:
	}
	if err := r.issued(rec, failed); err != nil {
		return err
	}
	waits := slices.ContainsFunc(rec.Summary.Open, func(a forge.Attempt) bool { return r.patience[a] >= told })
	if r.keeps && waits != r.told {
		return fmt.Errorf("%s: a step waits for long for a replica: %v; its project was told: %v", rec.Summary.Key, waits, r.told)
	}
	return nil
}

// paid returns an error if a result has a step made again although replicas
// ended it as often as may be.
func (r *Replicas) paid(rec *forge.Record, m *forge.Result, counts bool) error {
	f := m.Failure()
	ended := f != nil && (f.Reason == forge.FailUnwell || f.Reason == forge.FailKilledReplica)
	if !counts || !ended || r.unwell[stepOf(m.Attempt)] < mostUnwell {
		return nil
	}
	for i := range rec.Effects.Commands {
		if c := &rec.Effects.Commands[i]; stepOf(c.Attempt) == stepOf(m.Attempt) && !c.Analyze().PolicyOnly { // to read the policy costs nothing
			return fmt.Errorf("%s is made again, and paid for, although replicas ended it %d times", c.Attempt, r.unwell[stepOf(m.Attempt)])
		}
	}
	return nil
}

// issued takes the effects of a record. failed is an answer that no replica can
// do a step: what follows it waits for longer, and for no timer.
func (r *Replicas) issued(rec *forge.Record, failed *forge.Result) error {
	for i := range rec.Effects.Commands {
		c := &rec.Effects.Commands[i]
		if failed != nil && stepOf(c.Attempt) == stepOf(failed.Attempt) {
			if least := min(2*r.patience[failed.Attempt], mostPatient); c.Patience < least {
				return fmt.Errorf("%s waits for %s at the replicas, which is not longer than the one before", c.Attempt, c.Patience)
			}
		}
		r.over(func(a forge.Attempt) bool { return stepOf(a) == stepOf(c.Attempt) })
		r.patience[c.Attempt] = c.Patience
	}
	for _, t := range rec.Effects.Timers {
		if failed != nil && strings.HasPrefix(t.Key, "park/") {
			return fmt.Errorf("%s waits for a timer, because no replica can do %s", t.Key, failed.Attempt)
		}
	}
	for i := range rec.Effects.Outbox {
		if m := forge.As[*forge.ObstacleReported](rec.Effects.Outbox[i].Message); m != nil && m.Agent == forge.AnyReplica {
			r.told = m.Failure.Reason == forge.FailReplica
		}
		if forge.As[*forge.RunEnded](rec.Effects.Outbox[i].Message) != nil { // which the project takes for the end of all of it
			r.told = false
		}
	}
	r.over(func(a forge.Attempt) bool { return slices.Contains(rec.Effects.Cancels, a) })
	for i := range rec.Events {
		m := forge.As[*forge.Result](rec.Events[i].Message)
		switch {
		case m == nil:
		case !m.IsStart():
			delete(r.patience, m.Attempt)
		case r.patience[m.Attempt] > 0:
			r.patience[m.Attempt] = 0
		}
	}
	return nil
}

// over forgets attempts whose results do not count any more.
func (r *Replicas) over(which func(forge.Attempt) bool) {
	maps.DeleteFunc(r.patience, func(a forge.Attempt, _ time.Duration) bool { return which(a) })
}

// Sick reports whether a world is one in which every second attempt meets a replica that cannot do
// it, or not to its end. It follows from the seed alone, so that other worlds stay as they are.
func Sick(seed uint64) bool { return seed%64 == 34 }

// Kills reports whether a world is a sick one in which replicas are killed, and do not live to say
// that they were not well.
func Kills(seed uint64) bool { return seed%256 == 98 }
