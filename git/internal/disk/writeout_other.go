//go:build !linux

package disk

import "os"

func writeOut(f *os.File) error { return f.Sync() }
