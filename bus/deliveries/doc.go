// Package deliveries stores what forges and chats tell the gateway, as it came, and reads it again.
//
// A delivery is stored before its sender is answered, and known by its sender's own
// id for as long as the stream has it, so that it is there once however often it is
// sent. It is a hint that there is something to look at, and a piece of evidence of
// how that looked; it is never the truth about it. What a system asks for through a
// hook of its own is the exception: there is nothing else to look at.
//
// Gateways store claims there as well, each under the name of a chat of their
// own: the server takes each once, and so one of them acts.
package deliveries
