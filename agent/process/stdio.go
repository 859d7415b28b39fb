package process

import (
	"bytes"
	"os/exec"
)

// connect gives cmd its input and output.
func connect(cmd *exec.Cmd, c *Command, out *capture) {
	if c.Stdin != nil {
		cmd.Stdin = bytes.NewReader(c.Stdin)
	}
	cmd.Stdout = out.stdout()
	cmd.Stderr = cmd.Stdout // the same writer is the same pipe
	if !c.MergeStderr {
		cmd.Stderr = out.stderr()
	}
}
