//go:build !linux

package testdir

// memory is the name of no directory: other systems keep no files in memory by default.
const memory = ""

// free returns 0.
func free(string) uint64 { return 0 }
