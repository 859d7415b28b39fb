// Package remote runs a command of package process somewhere else, at the other end of
// one connection: in a pod, where neither the service's files nor its network can be
// reached.
//
// Run is the service's end, Serve the other, which Main runs in this same executable.
// The connection carries several streams (yamux): the order and what the command prints,
// the directories that it needs, those that it may have changed, and each connection
// to an address that only the service reaches, such as the model's gateway. So the other
// machine needs no file, no secret and no network beforehand.
//
// The two ends do not trust each other equally. Serve does as it is told. Run believes
// nothing that comes back: sizes are bounded, files are unpacked below their directory
// alone and replace it only when all of them have arrived, and whatever is said after
// the time of the command is over counts as a loss (process.ErrLost).
package remote
