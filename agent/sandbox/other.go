//go:build !linux

package sandbox

// Available reports whether the system has what a sandbox needs at all. Whether this
// machine lets us use it, only trying tells.
const Available = false

// HidesAbstractSockets reports false: there is no sandbox.
func HidesAbstractSockets() bool { return false }
