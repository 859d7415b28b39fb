//go:build !linux

package sandbox

// Available reports whether the operating system supports sandboxes at all. Whether
// this machine permits them is known only after trying; see process.Probe.
const Available = false

// HidesAbstractSockets reports whether the machine's abstract unix sockets are out of
// reach although its network is not. It takes the sixth version of Landlock.
func HidesAbstractSockets() bool { return false }
