package chat

// Acts wait in two queues: those of accounts that stand for a person, and those of
// strangers, who can press as well wherever they see a message. Each queue has a
// bound of its own. A round decides all that is due of people, then one stranger's,
// and then the stream is read again: so whoever presses while strangers are
// answered waits for one answer, which takes as long as the chat lets us wait.

import (
	"context"
	"slices"
	"time"

	"github.com/pfl-forge/pfl-forge/bus/deliveries"
)

// add has an act decided. Those of people and of strangers have a bound each, on their number and
// their bytes, so that these keep none of those out.
func (d *decider) add(ctx context.Context, one deliveries.Delivery) {
	p := &pending{Delivery: one, stranger: d.isStranger(&one)}
	most := maxOpen
	if p.stranger {
		most = maxStrangers
	}
	waiting, size := d.queue(p.stranger), len(one.Body)
	for _, what := range waiting {
		size += len(d.open[what].Body)
	}
	if len(waiting) >= most || size > maxBytes {
		d.cfg.Log.WarnContext(ctx, "an act in a chat is dropped: too many wait to be decided", "chat", d.cfg.Name, "delivery", one.ID, "stranger", p.stranger)
		return
	}
	d.open[pressThing(&one)] = p
}

// isStranger reports whether the act of a delivery is of an account that stands
// for no person. What cannot be read is of none either.
func (d *decider) isStranger(one *deliveries.Delivery) bool {
	a, err := d.interactive.Read(one)
	return err != nil || !d.cfg.knows(a)
}

// queue returns the things of the acts of people, or of strangers, the oldest first.
func (d *decider) queue(strangers bool) (list []string) {
	for what, p := range d.open {
		if p.stranger == strangers {
			list = append(list, what)
		}
	}
	slices.SortFunc(list, func(a, b string) int { return d.open[a].At.Compare(d.open[b].At) })
	return list
}

// round has those acts decided that are due, and returns when the next one is.
// People come first, and one stranger after them: whoever presses meanwhile waits
// for the answer to that one alone, since the stream is read again after it.
func (d *decider) round(ctx context.Context, now time.Time) time.Time {
	for _, what := range d.queue(false) {
		if p := d.open[what]; !now.Before(p.due) {
			d.decideOne(ctx, what, p)
		}
	}
	for _, what := range d.queue(true) {
		if p := d.open[what]; !now.Before(p.due) {
			d.decideOne(ctx, what, p)
			break
		}
	}
	next := now.Add(seldom)
	for _, p := range d.open {
		next = earlier(next, p.due)
	}
	return next
}
