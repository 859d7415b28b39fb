// Package signed signs what people, systems and workers send to a runner, and says whether to believe it.
//
// A message carries one header, the text of a [Proof]: what the author says that the message is (subject, id, content
// type, time and the hash of the content), the public key, and an ed25519 signature over all of that. The text is complete in itself, so
// the journal keeps it as it is, and whoever reads the journal can check it without a server.
//
//	proof.go   the Proof: made by Sign alone, and its one form as text
//	keys.go    Keys: which key is whose, read again when the file changes; Check decides on a message
//
// Keys are those of package proof: each follows from the nkey of its account, and is another key than the nkey, because
// the server chooses what an nkey signs when a connection begins. Nothing here talks to a server.
package signed
