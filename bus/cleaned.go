package bus

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go"

	forge "github.com/pfl-forge/pfl-forge"
)

// mostCleaned bounds the intents in a message: as many as a request to clean names.
const mostCleaned = 100

// cleanedMessage tells replicas what is gone from the origin.
type cleanedMessage struct {
	Intents []forge.IntentID `json:"intents"`
}

// TellCleaned tells all replicas that commits of some intents are gone from the project's
// origin. It is not stored.
func (l *Live) TellCleaned(project forge.ProjectID, intents []forge.IntentID) error {
	subject, err := cleanedSubject(project)
	if err != nil {
		return fmt.Errorf("tell what is cleaned: %w", err)
	}
	for some := range slices.Chunk(intents, mostCleaned) {
		data, err := json.Marshal(cleanedMessage{some})
		if err != nil {
			return err
		}
		if err := l.conn.nc.Publish(subject, data); err != nil {
			return fmt.Errorf("publish on %s: %w", subject, err)
		}
	}
	return nil
}

// FollowCleaned calls do with what TellCleaned tells of all projects, one after the
// other, from when it returns until ctx ends.
func (l *Live) FollowCleaned(ctx context.Context, do func(forge.ProjectID, []forge.IntentID)) error {
	sub, err := l.conn.nc.Subscribe(everyCleaned, func(m *nats.Msg) {
		project, intents, err := parseCleaned(m)
		if err != nil {
			l.conn.log.Warn("ignored a live message", "subject", m.Subject, "error", err)
			return
		}
		do(project, intents)
	})
	if err != nil {
		return fmt.Errorf("follow %s: %w", everyCleaned, err)
	}
	context.AfterFunc(ctx, func() { _ = sub.Unsubscribe() })
	flush, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if err := l.conn.nc.FlushWithContext(flush); err != nil {
		_ = sub.Unsubscribe()
		return fmt.Errorf("follow %s: %w", everyCleaned, err)
	}
	return nil
}

func parseCleaned(m *nats.Msg) (forge.ProjectID, []forge.IntentID, error) {
	t, err := tokens(m.Subject, "forge.cleaned.", 1)
	if err != nil {
		return "", nil, err
	}
	var told cleanedMessage
	if err := json.Unmarshal(m.Data, &told); err != nil {
		return "", nil, err
	}
	for _, id := range told.Intents {
		if _, err := forge.ParseIntentID(string(id)); err != nil {
			return "", nil, err
		}
	}
	project, err := forge.ParseProjectID(t[0])
	return project, told.Intents, err
}
