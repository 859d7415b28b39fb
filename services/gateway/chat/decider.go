package chat

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/deliveries"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/messages"
	"github.com/pfl-forge/pfl-forge/services/gateway/api"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
	"github.com/pfl-forge/pfl-forge/services/gateway/tokens"
)

// decider has acts decided, each once. All of it is for one goroutine.
type decider struct {
	cfg         *Config
	interactive Interactive
	ledger      *ledger
	// hint has the messages of an intent brought up to date.
	hint func(forge.Key)
	// seq is the last delivery that was read, and open has those whose acts are
	// to be decided, by their things.
	seq  uint64
	open map[string]*pending
}

// pending is a delivery whose act is to be decided.
type pending struct {
	deliveries.Delivery

	due time.Time
	// stranger says that it is of an account that stands for no person.
	stranger bool
}

const (
	// fresh is for how long an act counts: a person who pressed and saw nothing
	// happen for that long has gone on.
	fresh = 15 * time.Minute
	// maxOpen bounds the acts that wait to be decided, and maxBytes what came with them: a hook
	// takes a MiB with each, and an act has a few KiB.
	maxOpen  = 1000
	maxBytes = 16 << 20
	// maxStrangers bounds those of accounts that stand for no person: everybody
	// in a channel can press.
	maxStrangers = 20
	// seldom is how often the stream is looked at without anything having been heard. After
	// something was, it is looked at settles times more, the first time after settle.
	seldom  = 15 * time.Second
	settle  = 20 * time.Millisecond
	settles = 7
	// maxWords bounds the words that a person types, in bytes.
	maxWords = 16 << 10
)

// Socket is the event of a delivery that came through a connection of our own,
// under the name of the chat.
const Socket = "socket"

// newDecider returns a decider.
func newDecider(cfg *Config, interactive Interactive, l *ledger, hint func(forge.Key)) *decider {
	return &decider{cfg: cfg, interactive: interactive, ledger: l, hint: hint, open: map[string]*pending{}}
}

// read takes the deliveries that were stored since the last time, and reports
// whether it has seen all of them. Entries of the ledger are among them, in the
// order in which the server has stored them.
func (d *decider) read(ctx context.Context) bool {
	last, err := d.cfg.Deliveries.After(ctx, d.seq, func(one deliveries.Delivery) error {
		ours := slices.Contains(d.cfg.Hooks, one.Hook) || one.Hook == d.cfg.Name && one.Event == Socket
		if d.ledger.take(&one) || !ours || d.interactive == nil {
			return nil
		}
		switch {
		case d.cfg.Now().Sub(one.At) > fresh:
		default:
			d.add(ctx, one)
		}
		return nil
	})
	d.seq = max(d.seq, last)
	if err != nil && ctx.Err() == nil {
		d.cfg.Log.WarnContext(ctx, "cannot read what people did in a chat; trying again", "chat", d.cfg.Name, "error", err)
	}
	return err == nil
}

// pressThing names the act of a delivery in the ledger.
func pressThing(one *deliveries.Delivery) string { return "act/" + digest(one.Hook, one.ID) }

// run decides until ctx ends.
func (d *decider) run(ctx context.Context, heard <-chan struct{}) {
	// What is heard is stored a moment later: so the stream is looked at a few
	// times more, with longer and longer pauses.
	looks := 0
	for ctx.Err() == nil {
		whole := d.read(ctx)
		now := d.cfg.Now()
		next := now.Add(seldom)
		if !whole || looks > 0 {
			next = now.Add(settle << (settles - looks))
			looks = max(looks-1, 0)
		}
		next = earlier(next, d.round(ctx, now))
		timer := time.NewTimer(max(next.Sub(d.cfg.Now()), time.Millisecond))
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-heard:
			looks = settles
		}
		timer.Stop()
	}
}

// decideOne has one act decided, unless another gateway is at it.
func (d *decider) decideOne(ctx context.Context, what string, p *pending) {
	now := d.cfg.Now()
	if now.Sub(p.At) > fresh {
		d.cfg.Log.WarnContext(ctx, "an act in a chat was not decided in time", "chat", d.cfg.Name, "delivery", p.ID)
		delete(d.open, what)
		return
	}
	err := d.ledger.once(ctx, what, func() error { return d.act(ctx, &p.Delivery) })
	if err == nil {
		delete(d.open, what)
		return
	}
	p.due = notBefore(err, now)
	if _, held := errors.AsType[*heldError](err); !held && ctx.Err() == nil {
		p.due = earlier(p.due, now.Add(actAgain))
		d.cfg.Log.WarnContext(ctx, "an act in a chat is not decided yet; it is tried again", "chat", d.cfg.Name, "delivery", p.ID, "error", err)
	}
}

const (
	// actAgain is when an act is tried once more: its person waits.
	actAgain = 5 * time.Second
	// skew is how far the clocks of runners may be behind the server's, which
	// has the time of a delivery. A person who presses the same twice within it
	// is not told that it had been done: they did it.
	skew = 5 * time.Second
)

// act has the act of a delivery decided. An error has it tried again; what
// cannot be done is told to its person.
func (d *decider) act(ctx context.Context, one *deliveries.Delivery) error {
	a, err := d.interactive.Read(one)
	if err != nil { // its sender signed it, and it is nothing that we know
		if !errors.Is(err, ErrNothing) {
			d.cfg.Log.WarnContext(ctx, "cannot read what came from a chat", "chat", d.cfg.Name, "delivery", one.ID, "error", err)
		}
		return nil
	}
	t := &turn{decider: d, Act: a, delivery: one}
	why, err := t.decide(ctx)
	if err != nil || why == "" {
		return err
	}
	d.cfg.Log.InfoContext(ctx, "an act in a chat was not done", "chat", d.cfg.Name, "account", a.Team+"/"+a.Account, "why", why)
	return d.whisper(ctx, a, why)
}

// whisper tells the person who acted. It is given up if it cannot be told: the
// message in the channel says how the intent is.
func (d *decider) whisper(ctx context.Context, a *Act, text string) error {
	err := d.interactive.Whisper(ctx, a, text)
	if err != nil && ctx.Err() == nil {
		d.cfg.Log.WarnContext(ctx, "cannot send a person in a chat the outcome", "chat", d.cfg.Name, "error", err)
		return nil
	}
	return err
}

// turn is one act being decided.
type turn struct {
	*decider
	*Act

	delivery *deliveries.Delivery
	channel  *Channel
	holder   *api.Holder
}

// decide decides the act, or returns why not, as a sentence for its person.
func (t *turn) decide(ctx context.Context) (why string, err error) {
	if why := t.admit(); why != "" {
		return why, nil
	}
	if t.Press == nil {
		return t.submit(ctx)
	}
	return t.press(ctx)
}

// admit finds the person and the channel, or returns why there is none. An account is
// known by its id and that of its team, whatever its name is, and only where the team
// is the one of the settings: in a channel that teams share others have ids, too.
func (t *turn) admit() string {
	if t.Home == "" {
		return "The chat did not say which workspace your account is of, and there are several here: nothing was done. Use a command, or the console."
	}
	if !t.cfg.knows(t.Act) {
		return fmt.Sprintf("Your account %s of team %s is not known here, and nothing was done: have the operator of pfl-forge add it to the file of tokens, "+
			"as your account at %s.", t.cfg.Words.line(t.Account, maxLabel), t.cfg.Words.line(t.Home, maxLabel), t.cfg.Name)
	}
	i := slices.IndexFunc(t.cfg.Channels, func(c Channel) bool { return c.ID == t.Channel })
	if i < 0 || t.Press != nil && !slices.Contains(t.cfg.Channels[i].Projects, t.Press.Key.Project) {
		return "Nothing is decided from this channel, and nothing was done."
	}
	t.channel = &t.cfg.Channels[i]
	account := fmt.Sprintf("%s account %s of team %s", t.cfg.Name, t.Account, t.Team)
	t.holder = t.cfg.API.ForAccount(t.find, account, strings.TrimSpace(fmt.Sprintf("channel %s %s", t.Channel, t.Message)))
	return ""
}

// knows reports whether an act is of an account that stands for a person, also
// for one whose entry has expired.
func (c *Config) knows(a *Act) bool {
	if a.Team != c.Team || a.Home != c.Team {
		return false
	}
	_, err := c.Tokens.ByAccount(c.Name, a.Account)
	return !errors.Is(err, tokens.ErrNoAccount)
}

// find returns the person's entry of the file of tokens, as it is now.
func (t *turn) find() (*tokens.Token, error) { return t.cfg.Tokens.ByAccount(t.cfg.Name, t.Account) }

// path returns the address of the intent.
func (t *turn) path() string {
	return fmt.Sprintf("/api/v1/projects/%s/intents/%s", t.Press.Key.Project, t.Press.Key.Intent)
}

// press decides what was pressed, if its person saw the intent as it is.
func (t *turn) press(ctx context.Context) (why string, err error) {
	p := t.Press
	var now document.Detail
	if err := t.holder.Ask(ctx, api.Call{Method: http.MethodGet, Path: t.path()}, &now); err != nil {
		return t.refused(err)
	}
	// Whatever comes of it, the message is to show how it is: a person who
	// presses what is stale sees it as stale.
	t.hint(p.Key)
	n := NoticeOf(&now, t.cfg.Link, t.cfg.Words)
	if p.Seen != n.Seen || !n.Offers(p) {
		return t.stale(&now), nil
	}
	if p.typed() && !t.Typed {
		err := t.interactive.Ask(ctx, t.Act, p, deeds[p.Do].label)
		if errors.Is(err, ErrTyped) {
			return "It took too long to ask for your words, and nothing was done: press it again.", nil
		}
		if _, parked := errors.AsType[*forges.ParkedError](err); err != nil && !parked && ctx.Err() == nil {
			t.cfg.Log.WarnContext(ctx, "a person in a chat could not be asked for words", "chat", t.cfg.Name, "error", err)
			return "Your words could not be asked for, and nothing was done: press it again.", nil
		}
		return "", err
	}
	// A dialog can be sent long after it was opened: its words are held against
	// the state that was shown then, as a press is.
	words := strings.TrimSpace(t.Words)
	if len(words) > maxWords || words == "" && p.needs() && p.Pick == 0 {
		return fmt.Sprintf("Nothing was done: it needs words, of at most %d bytes.", maxWords), nil
	}
	if p.Do == Answer && messages.Approves(words) { // to reviewers who disagree about a change
		return "Nothing was done: a change is approved in the console, where it is shown.", nil
	}
	content, err := p.content(&now, words)
	if err != nil {
		return "Nothing was done: " + err.Error() + ".", nil //nolint:nilerr // the person is told, and it would fail again
	}
	return t.ask(ctx, api.Call{Method: http.MethodPost, Path: t.path() + "/" + string(deeds[p.Do].verb), Content: content})
}

// stale says that the intent is not as its person saw it; nothing if that is
// because of this very act, which was cut off when it was decided.
func (t *turn) stale(now *document.Detail) string {
	entry, err := t.find()
	if err != nil {
		return "Nothing was done: your entry in the file of tokens was removed or has expired."
	}
	var last *document.Decided
	for i := range now.Decisions {
		one := &now.Decisions[i]
		last = one
		since := t.delivery.At.Add(-skew)
		if one.By == entry.Person && one.What == string(deeds[t.Press.Do].verb) && one.Plan == t.Press.Plan && !one.At.Before(since) {
			return ""
		}
	}
	why := "Nothing was done: it has changed since you saw it. The message is updated."
	if last != nil {
		why += fmt.Sprintf(" The last decision was %s, by %s.", last.What, t.cfg.Words.line(last.By, maxLabel))
	}
	if t.Words != "" {
		why += " Your words were: " + t.cfg.Words.line(t.Words, maxQuestion)
	}
	return why
}

// ask hands a request on. It is known by the delivery, whoever hands it on and however often.
func (t *turn) ask(ctx context.Context, c api.Call) (why string, err error) {
	c.Key = "chat/" + t.cfg.Name + "/" + digest(t.delivery.Hook, t.delivery.ID)
	var done struct {
		Result string `json:"result"`
		Intent string `json:"intent"`
	}
	if err := t.holder.Ask(ctx, c, &done); err != nil {
		return t.refused(err)
	}
	// Stored and not decided is not done: the same wish is asked for again
	// until a runner has decided.
	if done.Result == "accepted" {
		return "", errUndecided
	}
	if t.Press != nil {
		t.hint(t.Press.Key)
		return "", nil
	}
	id, err := forge.ParseIntentID(done.Intent)
	if err != nil {
		return "", err
	}
	t.hint(forge.Key{Project: t.channel.Submit, Intent: id})
	return "It is asked for, as " + string(t.channel.Submit) + "/" + done.Intent + ".", nil
}

// errUndecided says that a runner has stored what it was asked, and not decided
// it: it is asked again, by the same id.
var errUndecided = errors.New("no runner has decided it yet")

// refused returns why the API refused a request, in a sentence; an error if it may yet be done.
func (t *turn) refused(err error) (string, error) {
	p, ok := errors.AsType[*api.Problem](err)
	if !ok || !p.IsFinal() {
		return "", err
	}
	why := []string{p.Detail}
	for _, e := range p.Errors {
		why = append(why, strings.TrimPrefix(e.Field+": "+e.Reason, ": "))
	}
	return "Nothing was done: " + t.cfg.Words.line(strings.Join(why, "; "), maxReason) + ".", nil
}

// submit asks for a change, by a command.
func (t *turn) submit(ctx context.Context) (why string, err error) {
	title, body, _ := strings.Cut(strings.TrimSpace(t.Words), "\n")
	title, body = strings.TrimSpace(title), strings.TrimSpace(body)
	switch {
	case t.channel.Submit == "":
		return "Nothing can be asked for in this channel.", nil
	case title == "" || len(t.Words) > maxWords:
		return fmt.Sprintf("Say what is to be done, in at most %d bytes: a title, and more in further lines.", maxWords), nil
	case body == "":
		body = title
	}
	return t.ask(ctx, api.Call{
		Method: http.MethodPost, Path: fmt.Sprintf("/api/v1/projects/%s/intents", t.channel.Submit), Content: map[string]any{"title": title, "body": body},
	})
}
