package conn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pfl-forge/pfl-forge/bus/internal/streams"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
)

// Probe asks once for the newest message of the journal, and returns nil if the server
// knows: there is one, or none, or no journal. The error says what is missing: the
// connection, JetStream, its leader, the right.
func (c *Conn) Probe(ctx context.Context, timeout time.Duration) error {
	if !c.NC.IsConnected() {
		if err := c.NC.LastError(); err != nil {
			return fmt.Errorf("the connection is lost: %w", err)
		}
		return nats.ErrConnectionReconnecting
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	subject := "$JS.API.STREAM.MSG.GET." + streams.Journal
	request, err := json.Marshal(map[string]string{"last_by_subj": subjects.EveryJournal})
	if err != nil {
		return err
	}
	var answer struct {
		Error *jetstream.APIError `json:"error"`
	}
	err = c.Permitted(ctx, subject, func(ctx context.Context) error {
		m, err := c.NC.RequestWithContext(ctx, subject, request)
		if err != nil {
			return err
		}
		return json.Unmarshal(m.Data, &answer)
	})
	switch {
	case errors.Is(err, ErrNotAllowed):
		return err
	case errors.Is(err, nats.ErrNoResponders):
		return fmt.Errorf("the server has no JetStream: %w", err)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("JetStream does not answer, as without a leader: %w", err)
	case err != nil:
		return fmt.Errorf("ask JetStream: %w", err)
	case answer.Error != nil && answer.Error.Code != 404:
		return fmt.Errorf("JetStream is not ready: %w", answer.Error)
	}
	return nil
}
