package consoletest

import "syscall"

// controlling makes the terminal on standard input the program's own.
func controlling() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Setctty: true}
}
