package outbox

import "github.com/pfl-forge/pfl-forge"

// ToIntent is a message from a project to one of its intents.
type ToIntent struct {
	// Intent is the receiver.
	Intent forge.IntentID
	// ID names the message within the project; the same decision always makes the
	// same id, so that the receiver recognises a repetition.
	ID string
	// Message is sent, such as *forge.RunAdmitted.
	Message forge.Message
}

// Messages collects the messages that the parts of a project send while they
// decide on one event, in the order in which they are to be sent.
type Messages []ToIntent

// Add appends a message to an intent.
func (m *Messages) Add(to forge.IntentID, id string, msg forge.Message) {
	*m = append(*m, ToIntent{Intent: to, ID: id, Message: msg})
}
