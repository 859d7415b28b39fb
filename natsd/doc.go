// Package natsd runs the embedded nats-server of one repository.
//
// One process at a time owns a store directory; a lock file in it says who. The
// owner listens on loopback under a random token and leaves both in client.json,
// so that any other process of the same user finds it:
//
//	<dir>/lock          flock of the owner: pid, start time, purpose
//	<dir>/client.json   where to connect, 0600, while the server runs
//	<dir>/jetstream/    the streams, every write fsynced before its ack
//
// The lock belongs to the process and ends with it, however it ends. A client.json
// that outlived its process is recognised by the lock and never used.
package natsd
