// Package signed signs what people, systems and workers send to a runner, and says
// whether to believe it.
//
// A message carries one header, the text of a [Proof]: what the author says that the
// message is (subject, id, content type, time and the hash of the content), the public
// key, and an ed25519 signature over all of that. The text is complete in itself, so
// the journal keeps it as it is, and whoever reads the journal can check it without a
// server.
//
//	proof.go      the Proof: made by Sign and SignAll alone, and its one form as text
//	together.go   one signature over several messages, and the place of each
//	keys.go       Keys: which key is whose, read again when the file changes; Check decides on a message
//	outcomes.go   signatures that come with more than one message are checked once
//
// # The form
//
// The value of the header Forge-Signed has eight fields with one space between them:
//
//	v1
//	subject                escaped as a query of a URL is, like the next two
//	Nats-Msg-Id            empty if the message has none
//	Content-Type           empty if the message has none
//	time                   RFC 3339 in UTC, with as many digits of a second as it has
//	SHA-256 of the content in 64 lower-case hexadecimal digits
//	public key             32 bytes in base64 as in URLs, without padding
//	signature              64 bytes, likewise
//
// A person who has logged in has a key that no file of trusted keys knows. Its header
// begins with v2, has a proof.Certificate as ninth field, which says whose the key is,
// and is signed with "pfl-forge signed message v2" in front and the certificate as last
// part.
//
// The signature, ed25519, is over these parts in this order, each after its length as a
// big-endian number of eight bytes: the text "pfl-forge signed message v1", subject,
// id, content type (these three not escaped), the time as in the header, the 32 bytes
// of the hash, and the 32 bytes of the key.
//
// One signature may be over 2 to 32 messages. The header of each begins with v3 and has
// the message's place as ninth field, behind which a certificate may follow. A place is,
// one after the other and in base64 like the key, 16 random bytes, a byte of turns and 1
// to 5 hashes of 32 bytes, all of them SHA-256. The message's own hash is over a byte 0,
// the random bytes, and the parts above with the text "pfl-forge signed message v3" in
// front and the certificate, if there is one, as last. With each hash of the place it
// becomes the hash of a byte 1 and both: first its own and then the other, or, where the
// turns have a 1, the other first. The lowest bit of the turns is that of the first hash;
// those that have none are 0. The signature is over three parts: the text "pfl-forge
// signed messages v3", the last hash, and the key.
//
// The private key follows from the seed of the nkey (the text that begins with SU) by
// HKDF with SHA-256, without salt, with the info "pfl-forge signing key v1: <account>",
// as 32 bytes: the seed of an ed25519 key.
//
// # Trust
//
// Keys are those of package proof: each follows from the nkey of its account, and is
// another key than the nkey, because the server chooses what an nkey signs when a
// connection begins. Nothing here talks to a server.
package signed
