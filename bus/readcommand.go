package bus

import (
	"github.com/nats-io/nats.go/jetstream"

	forge "github.com/pfl-forge/pfl-forge"
)

// readCommand reads a command. What the subject says is returned also with an
// error, if the subject is one.
func readCommand(m jetstream.Msg) (forge.Command, error) {
	return parseCommand(m.Subject(), m.Data())
}

func parseCommand(subject string, data []byte) (forge.Command, error) {
	said, err := parseCommandSubject(subject)
	if err != nil {
		return forge.Command{}, garbage("Command", "%w", err)
	}
	c, err := commands.Unmarshal(data)
	if err != nil {
		return said, err
	}
	if c.To != said.To || c.Attempt != said.Attempt || c.Replica != said.Replica {
		return said, garbage("Command", "it was sent to %s, but is %s", subject, c.ID())
	}
	if !c.HasInput() {
		return said, garbage("Command", "its input is not one of step %s", c.Attempt.Step)
	}
	return c, nil
}
