// Package wire has the codecs of all messages and the headers beside them. It is where
// values of package forge become bytes, with package codec, and bytes become values again.
// A message that cannot be read is a *GarbageError; one from a newer version is an
// *UnknownError.
package wire
