// Package chain makes manipulations of journals visible. Every record of a journal carries
// the hash of the message before it, and every event that a machine sends to another one
// names the record by which it was sent, an anchor, which the other machine journals. So
// each journal is a chain, and the chains of a project hold one another.
//
//	Of, Start    the hash of a message, and what the first record carries
//	Walk         follows one journal, message by message, and finds where its chain breaks
//	Audit        follows many, resolves their anchors, and compares them with a Checkpoint
//
// It is pure: package journal reads and writes.
package chain
