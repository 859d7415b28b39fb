package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/pfl-forge/pfl-forge/bus/changes"
)

// writeTime is how long a follower has to take what is written.
const writeTime = 10 * time.Second

// follow tells the changes of a project, as server-sent events, until the follower goes, does
// not read, or may not any more.
func (c *call) follow() error {
	after, err := c.position()
	if err != nil {
		return err
	}
	name := c.token.Name
	if !c.api.followers.enter(name) {
		p := problem(http.StatusTooManyRequests, "as many follow as are allowed")
		p.retryAfter = c.api.cfg.Heartbeat
		return p
	}
	defer c.api.followers.leave(name)
	ctx, cancel := context.WithCancel(c.r.Context())
	defer cancel()
	out := &stream{w: c.w, control: http.NewResponseController(c.w)}
	begun, told, ended := make(chan struct{}), make(chan changes.Published), make(chan error, 1)
	// A follower that is slow holds up its own watch, at the change that it was to take: none
	// waits in memory, and none is left out.
	go func() {
		ended <- c.api.cfg.Bus.Changes.Watch(ctx, c.project, after, func() { close(begun) }, func(p changes.Published) error {
			select {
			case told <- p:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}()
	defer func() {
		cancel()
		// The watch is over before the connection is used for something else.
		if err := <-ended; err != nil {
			c.api.cfg.Log.DebugContext(ctx, "a watch ended", "request", c.id, "error", err)
		}
	}()
	select {
	case <-begun:
	case err := <-ended:
		ended <- nil
		if errors.Is(err, changes.ErrPosition) {
			return wrong("Last-Event-ID", "is no id of an event here")
		}
		return err
	}
	c.w.Header().Set("Content-Type", "text/event-stream")
	c.w.WriteHeader(http.StatusOK)
	return c.relay(ctx, out, told, ended)
}

// relay writes published changes to the client until it ends, or ended says so.
// What has begun as a stream does not end as a problem.
func (c *call) relay(ctx context.Context, out *stream, published <-chan changes.Published, ended chan error) error {
	beat := time.NewTicker(c.api.cfg.Heartbeat)
	defer beat.Stop()
	err := out.write(": follows\n\n")
	for err == nil {
		select {
		case p := <-published:
			err = out.write(fmt.Sprintf("id: %d\nevent: %s\ndata: %s\n\n", p.Seq, p.Kind, p.Event))
		case <-beat.C:
			// A token that has expired, or was taken away, ends what it had begun.
			if !c.again(ctx) {
				return nil
			}
			err = out.write(": beat\n\n")
		case err = <-ended:
			ended <- nil
			if err == nil {
				return nil
			}
			c.api.cfg.Log.WarnContext(ctx, "cannot follow changes", "request", c.id, "error", err)
		case <-c.api.cfg.Ending:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
	return nil
}

// position returns the position after which to begin.
func (c *call) position() (uint64, error) {
	values := c.r.Header.Values("Last-Event-ID")
	if len(values) == 0 {
		return changes.Now, nil
	}
	after, err := strconv.ParseUint(values[0], 10, 62)
	if err != nil || len(values) > 1 {
		return 0, wrong("Last-Event-ID", "is no id of an event here")
	}
	return after, nil
}

// stream writes server-sent events.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

// write writes a text and has it sent. A follower that does not read ends the stream.
func (s *stream) write(text string) error {
	if err := s.control.SetWriteDeadline(time.Now().Add(writeTime)); err != nil {
		return err
	}
	if _, err := s.w.Write([]byte(text)); err != nil {
		return err
	}
	return s.control.Flush()
}
