package live

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
)

// mostCleaned bounds the intents in a message: as many as a request to clean names.
const mostCleaned = 100

// cleanedMessage names intents whose commits are gone from the origin.
type cleanedMessage struct {
	Intents []forge.IntentID `json:"intents"`
}

// PublishCleaned tells all replicas that commits of some intents are gone from the
// project's origin, so that they remove them from their clones, too. It is not
// stored: a replica that misses it does so at its next start.
func (l *Messages) PublishCleaned(project forge.ProjectID, intents []forge.IntentID) error {
	subject, err := subjects.Cleaned(project)
	if err != nil {
		return fmt.Errorf("report what is cleaned: %w", err)
	}
	for some := range slices.Chunk(intents, mostCleaned) {
		data, err := json.Marshal(cleanedMessage{some})
		if err != nil {
			return err
		}
		if err := l.conn.NC.Publish(subject, data); err != nil {
			return fmt.Errorf("publish on %s: %w", subject, err)
		}
	}
	return nil
}

// FollowCleaned calls do with the messages of PublishCleaned, of all projects, one
// after the other, from when it returns until ctx ends.
func (l *Messages) FollowCleaned(ctx context.Context, do func(forge.ProjectID, []forge.IntentID)) error {
	return follow(ctx, l.conn, subjects.EveryCleaned, func(m *nats.Msg) error {
		project, intents, err := parseCleaned(m)
		if err == nil {
			do(project, intents)
		}
		return err
	})
}

// parseCleaned reads a message, and refuses names that are none.
func parseCleaned(m *nats.Msg) (forge.ProjectID, []forge.IntentID, error) {
	t, err := subjects.Tokens(m.Subject, "forge.cleaned.", 1)
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
