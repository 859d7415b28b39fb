//go:build !linux && !darwin

package disk

import "errors"

// swap is not known to this system: the caller goes on in steps.
func swap(int, string, int, string) error { return errors.ErrUnsupported }

// moveNew is not known to this system: the caller goes on in steps.
func moveNew(int, string, int, string) error { return errors.ErrUnsupported }
