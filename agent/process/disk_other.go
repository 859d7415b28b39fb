//go:build !linux

package process

import "context"

// watchDisk does nothing where there is no sandbox.
func (c *Command) watchDisk(context.Context, context.CancelCauseFunc) {}
