package wire

import (
	"github.com/nats-io/nats.go/jetstream"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
)

// ReadCommand reads a command. What the subject says is returned also with an
// error, if the subject is one; not of a copy, which may have been put on any subject.
func ReadCommand(m jetstream.Msg) (forge.Command, error) {
	if err := Relayed(m.Headers()); err != nil {
		return forge.Command{}, err
	}
	return ParseCommand(m.Subject(), m.Data())
}

// ParseCommand reads a command and compares it with its subject. It returns what the
// subject says also with an error, if the subject is a command's.
func ParseCommand(subject string, data []byte) (forge.Command, error) {
	said, err := subjects.ParseCommand(subject)
	if err != nil {
		return forge.Command{}, Garbage("Command", "%w", err)
	}
	return parseCommand(subject, &said, data)
}

// ParsePlaced is ParseCommand also for a command that waits for its turn.
func ParsePlaced(subject string, data []byte) (forge.Command, error) {
	if _, said, err := subjects.ParseHeld(subject); err == nil {
		return parseCommand(subject, &said, data)
	}
	return ParseCommand(subject, data)
}

// parseCommand compares a command with what its subject says.
func parseCommand(subject string, at *forge.Command, data []byte) (forge.Command, error) {
	said := *at
	c, err := Commands.Unmarshal(data)
	if err != nil {
		return said, err
	}
	if c.To != said.To || c.Attempt != said.Attempt || c.Replica != said.Replica {
		return said, Garbage("Command", "it was sent to %s, but is %s", subject, c.ID())
	}
	if !c.HasInput() {
		return said, Garbage("Command", "its input is not one of step %s", c.Attempt.Step)
	}
	return c, nil
}
