package work

import (
	"context"
	"fmt"
	"strings"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/internal/conn"
	"github.com/pfl-forge/pfl-forge/bus/internal/streams"
)

// Queue says how many commands of a step there are.
type Queue struct {
	Step forge.Step
	// Waiting counts those that no replica has taken, Active those that one has.
	Waiting, Active int
}

// Queues returns the commands of every consumer: several of a step where some are for one
// replica alone, or for a group.
func (cs *Commands) Queues(ctx context.Context) ([]Queue, error) {
	ctx, cancel := context.WithTimeout(ctx, conn.RequestTimeout)
	defer cancel()
	stream, err := cs.conn.JS.Stream(ctx, streams.Commands)
	if err != nil {
		return nil, fmt.Errorf("look at the commands: %w", err)
	}
	var list []Queue
	consumers := stream.ListConsumers(ctx)
	for info := range consumers.Info() {
		name, _, _ := strings.Cut(info.Name, "-") // no step has a hyphen
		if step, err := forge.ParseStep(name); err == nil {
			list = append(list, Queue{Step: step, Waiting: int(info.NumPending), Active: info.NumAckPending})
		}
	}
	if err := consumers.Err(); err != nil {
		return nil, fmt.Errorf("look at the commands: %w", err)
	}
	return list, nil
}
