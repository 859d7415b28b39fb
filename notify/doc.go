// Package notify tells people what needs them: a command or a webhook for each kind of
// change of an intent. It follows what bus publishes under a name of its own for each
// target, so a restart neither loses a notification nor repeats one that was delivered.
//
// What runs a command is in a file of the operator or the user, never in a repository.
package notify
