package wire

import (
	"strings"
)

// OneLine makes a header's value out of any text.
func OneLine(s string) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "?")), " ")
	return s[:min(len(s), 400)]
}

// Headers of our own.
const (
	HeaderReply       = "Forge-Reply" // where the sender of an event waits for the ruling
	HeaderContentType = "Content-Type"
	HeaderReason      = "Forge-Reason"   // dead letters: why
	HeaderStream      = "Forge-Stream"   // dead letters: the stream that it was in
	HeaderSubject     = "Forge-Subject"  // dead letters: where it was
	HeaderSequence    = "Forge-Sequence" // dead letters: its sequence there
)

// InboxOnly returns a subject that a sender wants to be answered on if it is an inbox,
// or else nothing. What runners may publish, senders may not: an answer on a subject of
// the server's or of ours would be more than an answer.
func InboxOnly(subject string) string {
	if strings.HasPrefix(subject, "_INBOX") {
		return subject
	}
	return ""
}

// Results are stored nowhere but in the journal: a worker asks a runner to decide
// on its result, and keeps the result until the runner answers that the decision is
// journaled. An answer has one of HeaderDecided, HeaderAgain and HeaderReason, which
// says that no runner will ever decide on it.
const (
	HeaderDelivery = "Forge-Delivery" // of a result: how often it was sent, counted from 1
	HeaderDecided  = "Forge-Decided"  // the decision is journaled, and its effects are dispatched
	HeaderAgain    = "Forge-Again"    // not decided; send it again after this long
)

// Content types of submissions. Without one, JSON is told from protobuf by how it
// begins.
const (
	TypeJSON        = "application/json"
	TypeCloudEvents = "application/cloudevents+json"
)
