package conn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/pfl-forge/pfl-forge/internal/pattern"
)

// ErrNotAllowed says that the server does not let this account do something.
var ErrNotAllowed = errors.New("the NATS server does not permit it to this account")

// denials cancels the calls that wait for an answer on a subject on which the server lets
// this account not publish. The server says so beside the request, so that without this
// the answer would only seem to be late.
type denials struct {
	mu      sync.Mutex
	waiting map[string]map[*context.CancelCauseFunc]bool // by subject
	// inbox is the subject of answers on which this account may not listen; empty until
	// that is known.
	inbox string
}

// noInbox is the error of a call whose answer cannot be received.
func noInbox(subject string) error {
	return fmt.Errorf("%w: listening on %s, where the answers come", ErrNotAllowed, subject)
}

// Permitted calls f, which publishes on a subject and waits for an answer. When the server
// refuses the subject meanwhile, f's context ends, and the error is ErrNotAllowed with the
// subject.
func (c *Conn) Permitted(ctx context.Context, subject string, f func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer c.denials.add(subject, &cancel)()
	err := f(ctx)
	if cause := context.Cause(ctx); err != nil && errors.Is(cause, ErrNotAllowed) {
		return cause
	}
	return err
}

// add has a function called when a subject is denied, until the function that it returns
// is called.
func (d *denials) add(subject string, cancel *context.CancelCauseFunc) (remove func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.inbox != "" {
		(*cancel)(noInbox(d.inbox))
	}
	if d.waiting == nil {
		d.waiting = map[string]map[*context.CancelCauseFunc]bool{}
	}
	if d.waiting[subject] == nil {
		d.waiting[subject] = map[*context.CancelCauseFunc]bool{}
	}
	d.waiting[subject][cancel] = true
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.waiting[subject], cancel)
		if len(d.waiting[subject]) == 0 {
			delete(d.waiting, subject)
		}
	}
}

// inboxDenied ends the calls that wait for answers on a subject; all calls, also later
// ones, if it is the connection's own.
func (d *denials) inboxDenied(subject string, own bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if own {
		d.inbox = subject
	}
	for waits, calls := range d.waiting {
		for cancel := range calls {
			if own || waits == subject {
				(*cancel)(noInbox(subject))
			}
		}
	}
}

var (
	deniedPublish = pattern.New(`(?i)publish to "([^"]+)"`)
	deniedInbox   = pattern.New(`(?i)subscription to "(_INBOX[^"]+)"`)
)

// Reported looks at an error that the server tells beside all requests, and ends the calls
// that it is about. Without the connection's own inbox, no call gets an answer any more; a
// call may have another one, and be registered under it.
func (c *Conn) Reported(nc *nats.Conn, err error) {
	if !errors.Is(err, nats.ErrPermissionViolation) {
		return
	}
	if m := deniedInbox.FindStringSubmatch(err.Error()); m != nil {
		own := cmp.Or(nc.Opts.InboxPrefix, strings.TrimSuffix(nats.InboxPrefix, "."))
		c.denials.inboxDenied(m[1], strings.HasPrefix(m[1], own+"."))
		return
	}
	m := deniedPublish.FindStringSubmatch(err.Error())
	if m == nil {
		return
	}
	c.denials.mu.Lock()
	defer c.denials.mu.Unlock()
	for cancel := range c.denials.waiting[m[1]] {
		(*cancel)(fmt.Errorf("%w: publishing on %s", ErrNotAllowed, m[1]))
	}
}
