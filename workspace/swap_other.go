//go:build !linux && !darwin

package workspace

import "errors"

func swap(int, string, int, string) error { return errors.ErrUnsupported }

func moveNew(int, string, int, string) error { return errors.ErrUnsupported }
