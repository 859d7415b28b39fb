package chat

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/requests"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/notify"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
)

// poster keeps the messages. All but hint is for one goroutine.
type poster struct {
	cfg         *Config
	interactive Interactive
	ledger      *ledger
	hints       chan forge.Key
	// due says when to look at an intent.
	due map[forge.Key]time.Time
	// messages has those of ours that are known, and found says up to when a
	// channel was looked through.
	messages map[slot]*message
	found    map[string]time.Time
	// unsure has the channels in which there may be a message of ours that we
	// do not know: the answer to its post was lost.
	unsure map[string]bool
	// free is when a channel may get another message, and parked when the chat
	// may be told anything again.
	free      map[string]time.Time
	parked    time.Time
	nextSweep time.Time
}

// slot is the place of a message.
type slot struct {
	channel string
	key     forge.Key
}

// message is one of ours.
type message struct {
	id   string
	mark Mark
	at   time.Time
}

const (
	// firstFind is how far back a channel is looked through at the start, and
	// overlap how far each look goes back behind the one before.
	firstFind = 30 * 24 * time.Hour
	overlap   = 2 * time.Minute
	// missed is how far back ended intents are told at the start that have no message.
	missed = time.Hour
	// page is how many intents are listed at a time, and maxPages bounds the pages of a sweep.
	page     = 200
	maxPages = 50
)

// newPoster returns a poster without messages.
func newPoster(cfg *Config, interactive Interactive, l *ledger) *poster {
	return &poster{
		cfg: cfg, interactive: interactive, ledger: l, hints: make(chan forge.Key, 1000), due: map[forge.Key]time.Time{}, messages: map[slot]*message{},
		found: map[string]time.Time{}, unsure: map[string]bool{}, free: map[string]time.Time{},
	}
}

// hint has an intent looked at soon. One that there is no room for is found by the sweep.
func (t *poster) hint(key forge.Key) {
	select {
	case t.hints <- key:
	default:
	}
}

// run looks until ctx ends.
func (t *poster) run(ctx context.Context) {
	for ctx.Err() == nil {
		if now := t.cfg.Now(); !now.Before(t.parked) {
			t.sweep(ctx, now)
			t.lookAround(ctx)
		}
		t.rest(ctx)
	}
}

// rest waits until there is something to do.
func (t *poster) rest(ctx context.Context) {
	next := t.nextSweep
	for _, at := range t.due {
		if at.Before(next) {
			next = at
		}
	}
	if next.Before(t.parked) {
		next = t.parked
	}
	timer := time.NewTimer(max(next.Sub(t.cfg.Now()), time.Millisecond))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case key := <-t.hints:
		t.look(key, t.cfg.Now().Add(t.cfg.Debounce))
	}
}

// look sets the time at which an intent is looked at, unless that is going to happen sooner.
func (t *poster) look(key forge.Key, at time.Time) {
	if before, known := t.due[key]; !known || at.Before(before) {
		t.due[key] = at
	}
}

// sweep looks for all that may have to be told, when it is time for that.
func (t *poster) sweep(ctx context.Context, now time.Time) {
	if now.Before(t.nextSweep) {
		return
	}
	t.nextSweep = now.Add(t.cfg.Every)
	failed := func(err error, what, where string) {
		t.failed(ctx, err, what, where)
		t.nextSweep = earlier(t.nextSweep, notBefore(err, now))
	}
	for _, c := range t.cfg.Channels {
		if err := t.find(ctx, c.ID); err != nil {
			failed(err, "cannot look through a channel", c.ID)
		}
		if now.Before(t.parked) {
			return // the rest has to wait as well
		}
	}
	for _, p := range t.cfg.projects() {
		if err := t.list(ctx, p, now); err != nil && ctx.Err() == nil {
			failed(err, "cannot list the intents of a project", string(p))
		}
	}
	// What is remembered is bounded: a message of an intent that ended a month
	// ago is not edited any more, unless it is found again.
	t.ledger.forget()
	for s, m := range t.messages {
		if !m.mark.Open && now.Sub(m.at) > firstFind {
			delete(t.messages, s)
		}
	}
}

// list has all intents of a project looked at that wait, and those that ended a short while ago.
func (t *poster) list(ctx context.Context, p forge.ProjectID, now time.Time) error {
	for _, f := range []document.Filter{
		{Waiting: document.Waits},
		{Status: []string{string(forge.StatusDone), string(forge.StatusBlocked), string(forge.StatusError)}, Since: now.Add(-max(missed, 2*t.cfg.Every))},
	} {
		after := ""
		for range maxPages {
			data, err := t.cfg.Submissions.List(ctx, p, t.cfg.Gateway, requests.ListRequest{Filter: f, After: after, Limit: page})
			if err != nil {
				return err
			}
			var found document.Listed
			if err := json.Unmarshal(data, &found); err != nil {
				return err
			}
			for _, s := range found.Intents {
				t.look(forge.Key{Project: s.Project, Intent: s.Intent}, now)
			}
			if after = string(found.Next); after == "" {
				break
			}
		}
	}
	return nil
}

// find looks through a channel for messages of ours that were posted since the
// last time, by whichever gateway. Of two for one intent the older one stays.
func (t *poster) find(ctx context.Context, channel string) error {
	if t.interactive == nil {
		return nil
	}
	now := t.cfg.Now()
	since := now.Add(-firstFind)
	if last, known := t.found[channel]; known {
		since = last.Add(-overlap)
	}
	list, err := t.interactive.Find(ctx, channel, since)
	if err != nil {
		return err
	}
	for _, p := range list {
		s := slot{channel, p.Mark.Key}
		m := t.messages[s]
		switch {
		case m == nil:
			t.messages[s] = &message{id: p.ID, mark: p.Mark, at: p.At}
			if p.Mark.Open {
				t.look(p.Mark.Key, now)
			}
		case m.id == p.ID:
			// Another gateway may have edited it, to a state that was the older one.
			if m.mark.Text != p.Mark.Text {
				m.mark = p.Mark
				t.look(p.Mark.Key, now)
			}
		default:
			if err := t.removeYounger(ctx, s, m, &p); err != nil {
				return err
			}
		}
	}
	t.found[channel], t.unsure[channel] = now, false
	return nil
}

// removeYounger removes the younger one of two messages for one intent.
func (t *poster) removeYounger(ctx context.Context, s slot, m *message, p *Posted) error {
	younger := p.ID
	if p.At.Before(m.at) {
		younger = m.id
		*m = message{id: p.ID, mark: p.Mark, at: p.At}
		t.look(s.key, t.cfg.Now())
	}
	t.cfg.Log.InfoContext(ctx, "a message was there twice; the younger one is removed", "chat", t.cfg.Name, "channel", s.channel, "intent", name(s.key))
	if err := t.interactive.Remove(ctx, s.channel, younger); err != nil && !errors.Is(err, forges.ErrNotFound) {
		return err
	}
	return nil
}

// lookAround looks at each intent that is due.
func (t *poster) lookAround(ctx context.Context) {
	now := t.cfg.Now()
	for key, at := range t.due {
		if ctx.Err() != nil || t.cfg.Now().Before(t.parked) {
			return
		}
		if now.Before(at) {
			continue
		}
		delete(t.due, key)
		if err := t.keep(ctx, key); err != nil && ctx.Err() == nil {
			t.failed(ctx, err, "cannot report an intent", name(key))
			t.look(key, notBefore(err, t.cfg.Now()))
		}
	}
}

// failed parks the poster if the chat says so, and tells the log of what is no matter of course.
func (t *poster) failed(ctx context.Context, err error, what, where string) {
	// Of several channels one may be held, and another one say that the chat
	// wants to be left alone.
	parked, ok := errors.AsType[*forges.ParkedError](err)
	if ok {
		t.parked = parked.Until
	}
	if _, held := errors.AsType[*heldError](err); held && !ok {
		return
	}
	t.cfg.Log.WarnContext(ctx, "a look for a chat failed; there is another one later", "chat", t.cfg.Name, "what", what, "where", where, "error", err)
}

// keep brings the messages of an intent up to date.
func (t *poster) keep(ctx context.Context, key forge.Key) error {
	data, err := t.cfg.Submissions.Show(ctx, key, t.cfg.Gateway, document.Page{})
	if refused, ok := errors.AsType[*requests.RequestError](err); ok && refused.Code == http.StatusNotFound {
		return nil // it is stored, and not decided yet
	}
	if err != nil {
		return err
	}
	var d document.Detail
	if err := json.Unmarshal(data, &d); err != nil {
		return err
	}
	n := NoticeOf(&d, t.cfg.Link, t.cfg.Words)
	for i := range t.cfg.Channels {
		c := &t.cfg.Channels[i]
		if !slices.Contains(c.Projects, key.Project) {
			continue
		}
		if t.interactive == nil {
			err = errors.Join(err, t.postOnce(ctx, c, &n))
			continue
		}
		err = errors.Join(err, t.keepIn(ctx, c, &n))
	}
	return err
}

// postOnce posts to a chat that has no messages to keep: each state of its kinds once.
func (t *poster) postOnce(ctx context.Context, c *Channel, n *Notice) error {
	if !wants(c, n.Kind) {
		return nil
	}
	return t.ledger.once(ctx, thingOf("told", c, n.Key, n.Seen), func() error {
		_, err := t.cfg.Chat.Post(ctx, c.ID, n)
		return err
	})
}

// wants reports whether a kind begins a message in a channel.
func wants(c *Channel, k notify.Kind) bool { return k != "" && slices.Contains(c.On, k) }

// thingOf names something that is done once.
func thingOf(what string, c *Channel, key forge.Key, more string) string {
	return what + "/" + digest(c.ID, name(key), more)
}

// keepIn brings the message of an intent in a channel up to date, or posts it.
func (t *poster) keepIn(ctx context.Context, c *Channel, n *Notice) error {
	s := slot{c.ID, n.Key}
	// Else a message whose post was answered by nothing would stay as it was,
	// if the state is not worth one any more.
	if t.messages[s] == nil && t.unsure[c.ID] {
		if err := t.find(ctx, c.ID); err != nil {
			return err
		}
	}
	m, mark := t.messages[s], n.Mark()
	switch {
	case m == nil && !wants(c, n.Kind):
		return nil
	case m == nil:
		return t.post(ctx, c, n)
	case m.mark.Text == mark.Text:
		// It says so already: chats count what is written, and some show that a message was edited.
		return nil
	}
	// An edit tells no one, so what is news is said below as well: first, since
	// the edit makes it look as if it had been said.
	if m.mark.Seen != mark.Seen && wants(c, n.Kind) && n.Kind != notify.KindDone {
		err := t.ledger.once(ctx, thingOf("news", c, n.Key, n.Seen), func() error {
			return t.paced(c.ID, func() error { return t.interactive.Reply(ctx, c.ID, m.id, n) })
		})
		// Who holds it tells it; the message is brought up to date all the same.
		if _, held := errors.AsType[*heldError](err); err != nil && !held {
			return t.gone(s, err)
		}
	}
	if err := t.interactive.Edit(ctx, c.ID, m.id, n); err != nil {
		return t.gone(s, err)
	}
	m.mark = mark
	return nil
}

// gone forgets a message that a person has deleted: the next look posts another
// one where the state is worth one.
func (t *poster) gone(s slot, err error) error {
	if errors.Is(err, forges.ErrNotFound) {
		delete(t.messages, s)
	}
	return err
}

// paced does something that a channel shows as new, not too soon after the last one.
func (t *poster) paced(channel string, do func() error) error {
	now := t.cfg.Now()
	if free := t.free[channel]; now.Before(free) {
		return &heldError{free}
	}
	t.free[channel] = now.Add(t.cfg.Pace)
	return do()
}

// post posts a message, unless there is one by now. Which gateway posts is
// claimed, for the state that is told: a message that a person deletes is
// posted again when there is another state worth one.
func (t *poster) post(ctx context.Context, c *Channel, n *Notice) error {
	if free := t.free[c.ID]; t.cfg.Now().Before(free) {
		return &heldError{free}
	}
	s := slot{c.ID, n.Key}
	what := thingOf("post", c, n.Key, n.Seen)
	// A post whose answer was lost, or another gateway's, is found before there is another one.
	if err := t.find(ctx, c.ID); err != nil {
		return err
	}
	if t.messages[s] != nil {
		return t.keepIn(ctx, c, n)
	}
	return t.ledger.once(ctx, what, func() error {
		return t.paced(c.ID, func() error {
			t.unsure[c.ID] = true
			id, err := t.interactive.Post(ctx, c.ID, n)
			if err != nil {
				return err
			}
			t.unsure[c.ID] = false
			t.messages[s] = &message{id: id, mark: n.Mark(), at: t.cfg.Now()}
			return nil
		})
	})
}
