package service

import "runtime/debug"

// garbagePercent is how much a process may allocate, as a percentage of what it holds,
// before it looks for garbage. What our processes hold is small, some ten MB, and most
// of what they allocate is messages: looking more seldom takes a tenth off their
// processor time.
const garbagePercent = 400

// CollectSeldom makes the process spend memory for speed, unless the environment says
// how much: GOGC and GOMEMLIMIT are as for every Go program. Only a main calls it.
func CollectSeldom(getenv func(string) string) {
	if getenv("GOGC") == "" {
		debug.SetGCPercent(garbagePercent)
	}
}
