// Package natsd runs the embedded nats-server of one repository, for pfl-forge on one
// machine. Services that share a server elsewhere do not use it.
//
// One process at a time owns a store directory; a lock file in it says which. The owner
// ([Start]) listens on loopback under a random token and leaves both in client.json, so
// that any other process of the same user finds it ([Find]):
//
//	<dir>/lock          flock of the owner: pid, start time, purpose
//	<dir>/client.json   where to connect, 0600, while the server runs
//	<dir>/jetstream/    the streams, every write fsynced before its ack
//	<dir>/probe         written and removed by Healthy
//
// The lock belongs to the process and ends with it, however it ends. A client.json that
// outlived its process is recognised by the lock and never used.
//
// The directory may lie in a repository of which others wrote parts. So it is opened through
// os.Root, must belong to this user alone, and may hold neither links nor anything but
// files and directories.
//
//	server.go     Start, Shutdown: the life of a server
//	dir.go        the checked directory
//	lock.go       the lock file
//	endpoint.go   client.json
//	find.go       Find
//	health.go     Healthy, and how a failed disk is noticed
package natsd
