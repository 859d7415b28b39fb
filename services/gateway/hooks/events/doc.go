// Package events makes intents of the events that systems send to hooks. Such a hook is of
// the kind standard or cloudevents, and acts as one entry of the operator's file of tokens.
//
// A [Reader] reads the stream in which the door has stored what came, and asks the API in
// the name of the hook's entry: so roles, rates, quotas and the table of what a system
// may say are those of a request by HTTP. What comes is a CloudEvent, or is made one:
//
//	cloudevents, structured    as it is
//	cloudevents, binary        the body is the data; the id and the source are in the name of the delivery, the type is its event
//	standard                   {"type": ..., "timestamp": ..., "data": {...}}; the id is webhook-id, the source the system itself
//
// # Once
//
// The id of the intent follows from that of the event, so that one which is handed on
// twice, by whomever, is one intent. When it is settled a mark is stored beside the
// delivery; a reader that starts reads the stream from its beginning, and hands on what
// has no mark. So a gateway can be killed at any moment after the sender was answered.
//
//	accepted, or known      the mark
//	refused for good        among the dead letters with the field that is wrong, and in the log; then the mark
//	no runner is up         stored for the next one, which decides it; a refusal is then told on forge.refusal.<project>.<system>
//	anything else           tried again, after a pause that grows to a minute, for three days; then it is refused
//
// Each has its own pause, and several are handed on at the same time: one that
// cannot be done keeps no other one waiting for long.
package events
