package process

import (
	"bytes"
	"os/exec"
)

// connectStdio connects the command's stdin, stdout and stderr.
func connectStdio(cmd *exec.Cmd, c *Command, out *outputCapture) {
	if c.Stdin != nil {
		cmd.Stdin = bytes.NewReader(c.Stdin)
	}
	cmd.Stdout = out.stdout()
	cmd.Stderr = cmd.Stdout // the same writer is the same pipe
	if !c.MergeStderr {
		cmd.Stderr = out.stderr()
	}
}
