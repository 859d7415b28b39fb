package conn

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pfl-forge/pfl-forge/bus/internal/wire"
	"github.com/pfl-forge/pfl-forge/bus/signed"
	"github.com/pfl-forge/pfl-forge/proof"
)

// gatherTime is for how long a message may wait to be signed together with others.
const gatherTime = 10 * time.Millisecond

// confirmedFor is for how long a runner's word counts that all runners read signatures
// over several messages: whoever hears nothing for longer may next meet an older one.
const confirmedFor = 30 * time.Second

// Signable returns a message as its author signs it, and as a receiver compares it
// with its signature.
func Signable(subject string, header nats.Header, data []byte) *signed.Message {
	return &signed.Message{Subject: subject, ID: header.Get(jetstream.MsgIDHeader), ContentType: header.Get(wire.HeaderContentType), Payload: data}
}

// Signer signs messages by the key of the account. A message that is sent alone is signed
// at once. While earlier ones are not answered yet, those that come are gathered, and one
// signature is over all of them: to make and to check one is most of what a message costs
// the processor, and whoever answers is busy anyway. Until a runner has said that all runners
// can read that, each message has its own.
type Signer struct {
	// Key is asked for each signature; nil: messages stay unsigned.
	Key proof.Source

	// confirmed is when the last runner that answered said that it reads signatures over several
	// messages, as do all others that it knows of, in nanoseconds since 1970; 0 if it did not.
	confirmed atomic.Int64

	mu sync.Mutex
	// open counts the messages that were signed and are not answered yet.
	open int
	// next are those that wait for the next signature; nil if none do.
	next *group
}

// group is messages that are signed together.
type group struct {
	list []*signed.Message
	// due is closed when they are signed at once. released says that it is.
	due      chan struct{}
	released bool
	// done is closed when they are signed, or err says why none is, and errs why one is
	// not. texts are the values of the header; nil if the account has no key.
	done  chan struct{}
	texts []string
	errs  []error
	err   error
}

// Answered takes the header of a runner's answer.
func (s *Signer) Answered(answer nats.Header) {
	at := int64(0)
	if answer.Get(wire.HeaderTogether) != "" {
		at = time.Now().UnixNano()
	}
	s.confirmed.Store(at)
}

// together reports whether messages may be signed together.
func (s *Signer) together() bool {
	at := s.confirmed.Load()
	return at != 0 && time.Since(time.Unix(0, at)) < confirmedFor
}

// release has the group signed at once. The Signer is locked.
func (g *group) release() {
	if !g.released {
		g.released = true
		close(g.due)
	}
}

// Sign signs a message. Its subject, id, content type and content must not change
// afterwards. One that is urgent does not wait for others: those that wait are signed with
// it. It returns a function to be called once, when the message is answered or
// nothing is waited for any more.
func (s *Signer) Sign(m *nats.Msg, urgent bool) (answered func(), err error) {
	if s.Key == nil {
		return func() {}, nil
	}
	g, place, first := s.join(Signable(m.Subject, m.Header, m.Data), urgent)
	if first {
		s.sign(g)
	} else {
		<-g.done
	}
	return s.set(m, g, place)
}

// SignAlone is Sign without others, whatever runners say: for a message that
// was refused with a signature over several.
func (s *Signer) SignAlone(m *nats.Msg) (answered func(), err error) {
	if s.Key == nil {
		return func() {}, nil
	}
	g := newGroup()
	g.list = []*signed.Message{Signable(m.Subject, m.Header, m.Data)}
	g.release()
	s.sign(g)
	return s.set(m, g, 0)
}

// set sets the header of a message that was signed in a group.
func (s *Signer) set(m *nats.Msg, g *group, place int) (answered func(), err error) {
	err = g.err
	if err == nil && g.texts != nil {
		err = g.errs[place]
	}
	switch {
	case err != nil:
		s.answered()
		return nil, fmt.Errorf("sign a message for %s: %w", m.Subject, err)
	case g.texts != nil:
		m.Header.Set(signed.Header, g.texts[place])
	}
	return s.answered, nil
}

// newGroup returns a group without messages.
func newGroup() *group { return &group{due: make(chan struct{}), done: make(chan struct{})} }

// join adds a message to the group that is signed next. The first of a group has to sign
// it.
func (s *Signer) join(m *signed.Message, urgent bool) (g *group, place int, first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if first = s.next == nil; first {
		s.next = newGroup()
	}
	g = s.next
	together := s.together()
	if urgent || s.open == 0 || !together {
		g.release()
	}
	place = len(g.list)
	g.list = append(g.list, m)
	if len(g.list) == signed.MaxTogether || !together {
		g.release()
		s.next = nil
	}
	return g, place, first
}

// sign signs a group when it is due: together, or, if a runner has come
// meanwhile that cannot read that, one by one.
func (s *Signer) sign(g *group) {
	timer := time.NewTimer(gatherTime)
	select {
	case <-g.due:
	case <-timer.C:
	}
	timer.Stop()
	s.mu.Lock()
	if s.next == g {
		s.next = nil
	}
	s.open += len(g.list)
	s.mu.Unlock()
	defer close(g.done)
	key, err := s.Key.Key()
	switch {
	case err != nil:
		g.err = err
	case key != nil && s.together():
		g.texts, g.errs = signed.SignAll(key, g.list, time.Now())
	case key != nil:
		for i := range g.list {
			texts, errs := signed.SignAll(key, g.list[i:i+1], time.Now())
			g.texts, g.errs = append(g.texts, texts[0]), append(g.errs, errs[0])
		}
	}
}

// answered notes that a message is answered. When all are, those that wait are signed.
func (s *Signer) answered() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open--
	if s.open == 0 && s.next != nil {
		s.next.release()
	}
}
