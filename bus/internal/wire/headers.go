package wire

import (
	"errors"
	"strings"

	"github.com/nats-io/nats.go"
)

// OneLine makes a header's value out of any text.
func OneLine(s string) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "?")), " ")
	return s[:min(len(s), 400)]
}

// Headers of our own.
const (
	// HeaderReply is the inbox in which the sender of an event waits for the ruling.
	HeaderReply       = "Forge-Reply"
	HeaderContentType = "Content-Type"
	// HeaderIssued says when a command was issued that had to wait for its turn.
	HeaderIssued = "Forge-Issued"
	// HeaderReason says, in dead letters and in refusals of results, why.
	HeaderReason = "Forge-Reason"
	// HeaderStream is the stream that a dead letter was in.
	HeaderStream = "Forge-Stream"
	// HeaderSubject is the subject that a dead letter had.
	HeaderSubject = "Forge-Subject"
	// HeaderSequence is the sequence that a dead letter had in its stream.
	HeaderSequence = "Forge-Sequence"
)

// Inbox begins the subjects of every account's answers.
const Inbox = "_INBOX"

// InboxOf returns a subject on which a sender wants to be answered if it is in the
// inbox of the sender's own account, or else nothing. What runners may publish,
// senders may not: an answer on a subject of the server's or of ours would be more
// than an answer, and one in the inbox of another account would come to that as if
// it had asked. Where accounts have no names, all have the inbox _INBOX, on which no
// account with a name may listen. A sender without a name may speak for all, and
// have any inbox.
func InboxOf(sender, subject string) string {
	own := strings.HasPrefix(subject, Inbox+".") || strings.HasPrefix(subject, Inbox+"_"+sender+".") ||
		sender != "" && strings.HasPrefix(subject, Inbox+"_login."+sender+".") // of a person who comes by a login
	if own || sender == "" && strings.HasPrefix(subject, Inbox) {
		return subject
	}
	return ""
}

// Relayed returns a *GarbageError for a message that the server itself put where it
// is, as the answer to a direct get. The server does not check whether the one who
// named that subject may publish there, so that the permissions of its sender say
// nothing. Messages that are read by a direct get have the same header.
func Relayed(header nats.Header) error {
	if from := header.Get("Nats-Stream"); from != "" {
		return Garbage("Event", "it is a copy from stream %q, which nobody may send here", from)
	}
	return nil
}

// Results are stored nowhere but in the journal: a worker asks a runner to decide on
// its result, and keeps the result until the runner answers that the decision is
// journaled. An answer has one of HeaderDecided, HeaderAgain and HeaderReason, which
// says that no runner will ever decide on it.
const (
	// HeaderDelivery counts how often a result was sent, from 1.
	HeaderDelivery = "Forge-Delivery"
	// HeaderDecided answers a result whose decision is journaled and whose effects
	// are dispatched.
	HeaderDecided = "Forge-Decided"
	// HeaderAgain answers a result that is not decided: send it again after this
	// long.
	HeaderAgain = "Forge-Again"
)

// HeaderTogether is in the answers of a runner as long as all runners can read a signature
// over several messages. A sender that has not heard so signs each message by itself, which
// every runner reads: so an installation can be upgraded and taken back in any order.
const HeaderTogether = "Forge-Signed-Together"

// HeaderSettings is in the answers of a runner as long as all runners can read a policy
// with its settings. A worker that has not heard so leaves them out, for the same reason.
const HeaderSettings = "Forge-Settings-Told"

// HeaderKind says of a message that a runner stores which kind it is: KindRecord or KindWake.
const HeaderKind = "Forge-Kind"

// The kinds of messages that wait for a newer version if it takes one to understand them.
const (
	KindRecord = "record"
	KindWake   = "wake"
)

// OfKind returns an error of Unmarshal as it counts for a message with these headers. What
// a newer version wrote is left for that, and stops what comes behind it; so only what a
// runner stored as this kind is taken for it. Anything else that cannot be understood,
// such as a command that its worker had the server deliver elsewhere, is garbage.
func OfKind(err error, header nats.Header, kind string) error {
	unknown, ok := errors.AsType[*UnknownError](err)
	if !ok || header.Get(HeaderKind) == kind {
		return err
	}
	return Garbage(unknown.Message, "%v, and no runner stored it as a %s", err, kind)
}

// Content types of submissions. Without one, JSON is told from protobuf by how it
// begins.
const (
	TypeJSON        = "application/json"
	TypeCloudEvents = "application/cloudevents+json"
)
