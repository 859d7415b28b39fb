// Package notify tells people when an intent needs them, failed or is done: it runs a
// command or calls a webhook for each such change.
//
// The operator (or the user, where pfl-forge runs locally) lists targets in a file of their
// own, never in a repository, because a target may run a command. [Load] reads the file;
// a [Notifier] serves its targets until it is stopped:
//
//	changes of intents -> one durable follower per target (package bus)
//	                   -> queue -> one message per change, or a digest -> command or webhook
//
// Each target follows the published changes under a name of its own, so that a restart
// neither loses a notification nor repeats one that was delivered, and a target that does
// not answer holds up no other. A change is acknowledged when it was delivered. What cannot
// be delivered is tried again with growing pauses, and after eight attempts becomes a dead
// letter that the operator sees.
//
// When more than [Target.Most] notifications fall into one [Target.Window], the rest of
// the window becomes one digest.
//
// The fields of a message are described in docs/guide-systems.md and docs/guide-operators.md.
package notify
