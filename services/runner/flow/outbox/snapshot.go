package outbox

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/messages"
)

// snapshot is a Message as a snapshot of its machine holds it. Type names the type
// of the event's message, which JSON does not.
type snapshot struct {
	Key     string
	Reply   bool
	Event   forge.Event
	Type    string
	Message json.RawMessage
}

// MarshalJSON writes the message with the type of its event.
func (m *Message) MarshalJSON() ([]byte, error) {
	body, err := json.Marshal(m.Event.Message)
	if err != nil {
		return nil, fmt.Errorf("writing the message %s: %w", m.Key, err)
	}
	s := snapshot{Key: m.Key, Reply: m.Reply, Event: m.Event, Type: typeOf(m.Event.Message).Name(), Message: body}
	s.Event.Message = nil
	data, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("writing the message %s: %w", m.Key, err)
	}
	return data, nil
}

// UnmarshalJSON reads a message of any type that messages.All lists.
func (m *Message) UnmarshalJSON(data []byte) error {
	var s snapshot
	if err := json.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("reading a message: %w", err)
	}
	for _, spec := range messages.All() {
		if t := typeOf(spec.Message); t.Name() == s.Type {
			body := reflect.New(t)
			if err := json.Unmarshal(s.Message, body.Interface()); err != nil {
				return fmt.Errorf("reading the message %s: %w", s.Key, err)
			}
			s.Event.Message, _ = reflect.TypeAssert[forge.Message](body)
			*m = Message{Key: s.Key, Reply: s.Reply, Event: s.Event}
			return nil
		}
	}
	return fmt.Errorf("this version does not know messages of type %q", s.Type)
}

func typeOf(m forge.Message) reflect.Type { return reflect.TypeOf(m).Elem() }
