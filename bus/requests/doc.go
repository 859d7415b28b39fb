// Package requests carries what people and other systems ask for.
//
// People send events of their own, such as an approval, on subjects that only they may
// publish on: [Submissions.Send] and [Submissions.Ask]. Systems submit intents as JSON, as
// CloudEvents or as protobuf, and are told in an event of its own why one was refused.
// [Submissions.Serve] answers submit, list and show at once, as a NATS micro service.
// [Leftovers] does the same for removing what finished intents left.
//
// Whatever comes from outside is read here, and checked before any machine sees it: every
// mistake is told by field, all at once, as a [SubmissionError].
package requests
