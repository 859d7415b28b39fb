//go:build !linux && !darwin

package forgedir

import "errors"

func swap(int, string, int, string) error { return errors.ErrUnsupported }

func moveNew(int, string, int, string) error { return errors.ErrUnsupported }
