package forge

import (
	"encoding/json"
	"fmt"
	"reflect"
)

// plainCommand is a Command without its methods.
type plainCommand Command

// commandJSON is a Command as JSON holds it: next to the input stands the name
// of its type, because Input is an interface.
type commandJSON struct {
	plainCommand
	Input     json.RawMessage
	InputType string
}

// MarshalJSON returns the command as JSON that UnmarshalJSON reads back, for
// snapshots of state machines. Workers are sent the wire format.
func (c *Command) MarshalJSON() ([]byte, error) {
	j := commandJSON{plainCommand: plainCommand(*c)}
	if c.Input != nil {
		data, err := json.Marshal(c.Input)
		if err != nil {
			return nil, fmt.Errorf("writing the input of %s: %w", c.Attempt, err)
		}
		j.Input, j.InputType = data, reflect.TypeOf(c.Input).Elem().Name()
	}
	return json.Marshal(&j)
}

// UnmarshalJSON reads a command that MarshalJSON wrote, with an input of any
// type that Inputs lists.
func (c *Command) UnmarshalJSON(data []byte) error {
	var j commandJSON
	if err := json.Unmarshal(data, &j); err != nil {
		return err
	}
	*c = Command(j.plainCommand)
	if j.InputType == "" {
		return nil
	}
	for _, in := range Inputs() {
		if reflect.TypeOf(in).Elem().Name() == j.InputType {
			c.Input = in
			return json.Unmarshal(j.Input, in)
		}
	}
	return fmt.Errorf("this version does not know inputs of type %q", j.InputType)
}
