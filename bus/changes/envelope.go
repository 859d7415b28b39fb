package changes

import "github.com/pfl-forge/pfl-forge/document"

// CloudEvents are written and read in version 1.0, in the structured JSON format.
const (
	CloudEventsVersion = "1.0"
	// publishedType is the type of events that tell what became of one.
	publishedType = "io.pfl-forge.intent.%s.v1"
)

// CloudEvent is an event as it is published.
type CloudEvent[T any] = document.CloudEvent[T]
