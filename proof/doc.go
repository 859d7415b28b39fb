// Package proof signs what pfl-forge does and says whether to believe it: keys,
// the file of keys that are trusted, statements in envelopes, and the signature
// of a commit. It reads no repository and starts nothing.
//
//	key.go        a service's signing key, derived from a seed that it has in any case
//	signers.go    the file of trusted keys, in the format of OpenSSH's allowed_signers
//	envelope.go   a signed payload, as DSSE has it; a list of them is a text with one on each line
//	statement.go  in-toto statements about the steps of a change
//	commit.go     the signature of a commit, as git and ssh-keygen have it
//	chain.go      whether a commit has everything that shows how it came to be
//
// # Whom it trusts
//
// The file of trusted keys, and nothing else. A commit, its envelopes and every
// name in them may have been written by anyone; so all of it has bounds, and an
// envelope has exactly one form: read and written again it is the same, byte for
// byte. What a key may sign is said in the file by namespaces, so the key of one
// role is worth nothing for another's work.
package proof
