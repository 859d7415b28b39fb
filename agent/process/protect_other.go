//go:build !linux

package process

import "errors"

// Protect returns an error: it needs Linux.
func Protect() error {
	return errors.New("commands can be kept apart from their supervisor on Linux only")
}
