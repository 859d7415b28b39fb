package overhttp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/changes"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/internal/retry"
)

// listener has the functions that a stream of events calls.
type listener struct {
	// begun is called whenever the stream has begun, also again after it was cut off.
	begun func()
	// changed is called for each change of an intent, at least once.
	changed func(forge.IntentID)
}

const (
	// maxLine bounds a line of the stream, in bytes. A change has some ten kilobytes.
	maxLine = 1 << 20
	// maxEventID bounds the id of an event, which is sent back.
	maxEventID = 40
)

// follow tells of the changes of the project's intents until ctx ends. A stream
// that is cut off is asked for again, after the last event that came. Error: a
// refusal that does not end by itself, such as that of a token that has expired.
func (c *Client) follow(ctx context.Context, h listener) error {
	pace := retry.Pace{First: 250 * time.Millisecond, Most: c.bounds.pause}
	last := ""
	for {
		came, err := c.stream(ctx, &last, h)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		wait, again := c.again(err)
		if !again {
			return err
		}
		if came {
			pace = retry.Pace{First: 250 * time.Millisecond, Most: c.bounds.pause}
		}
		c.log.DebugContext(ctx, "the stream of changes ended; asking for it again", "error", err)
		if err := sleep(ctx, max(wait, pace.Pause())); err != nil {
			return err
		}
	}
}

// stream reads one stream of events to its end, and keeps the id of the last event.
// came says that it had begun. It never returns nil: a stream has no end of its own.
//
// The id counts once its event is complete. An event that was cut in two comes
// again as a whole, because it is asked for after the one before it. An id that
// the gateway cannot have made is not sent back: it is a number there.
func (c *Client) stream(ctx context.Context, last *string, h listener) (came bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	silence := time.AfterFunc(c.bounds.silence, cancel)
	defer silence.Stop()
	response, err := c.send(ctx, &request{method: http.MethodGet, address: c.path("events"), lastEvent: *last}, "text/event-stream")
	if err != nil {
		return false, err
	}
	defer response.Body.Close()
	if kind, _, err := mime.ParseMediaType(response.Header.Get("Content-Type")); err != nil || kind != "text/event-stream" {
		return false, garbage("the server answers with %s where a gateway answers with a stream of events", content(kind))
	}
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(make([]byte, 0, 64<<10), maxLine)
	id := ""
	for lines.Scan() {
		silence.Reset(c.bounds.silence)
		if !came { // the gateway says so with its first line
			came = true
			h.begun()
		}
		field, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "id":
			id = value
		case "data":
			h.deliver([]byte(value))
		case "": // the end of an event, or a comment
			if id != "" && len(id) <= maxEventID && strings.Trim(id, "0123456789") == "" {
				*last = id
			}
			id = ""
		default: // what kind of change it is does not matter
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return came, garbage("the server tells of a change in more than %d bytes", maxLine)
	}
	return came, errors.Join(io.ErrUnexpectedEOF, lines.Err())
}

// deliver calls changed for one change. One that is not understood is of no
// intent that could be looked at. Nothing else of an event is used: it may be a
// part of the truth, and the state is read anyway.
func (h *listener) deliver(data []byte) {
	var event changes.CloudEvent[document.Change]
	if json.Unmarshal(data, &event) != nil {
		return
	}
	if id, err := forge.ParseIntentID(string(event.Data.Intent)); err == nil {
		h.changed(id)
	}
}
