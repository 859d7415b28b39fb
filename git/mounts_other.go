//go:build !linux

package git

func mountsBelow(string) ([]string, error) { return nil, nil }

func unmountAll(string) error { return nil }
