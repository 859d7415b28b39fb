package sandbox

import (
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// Sockets returns the two ends of a socket: inside is for Offer in another process,
// outside for Receive.
func Sockets() (outside, inside *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	return os.NewFile(uintptr(fds[0]), "outside"), os.NewFile(uintptr(fds[1]), "inside"), nil
}

// Receive waits for the listener that Offer sends. It fails if the other process ends
// before.
func Receive(outside *os.File) (net.Listener, error) {
	var data [1]byte
	rights := make([]byte, unix.CmsgSpace(4))
	n, size, _, _, err := unix.Recvmsg(int(outside.Fd()), data[:], rights, unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, errors.New("the sandbox ended before it listened")
	}
	list, err := unix.ParseSocketControlMessage(rights[:size])
	if err != nil || len(list) != 1 {
		return nil, fmt.Errorf("the sandbox handed out no listener: %w", err)
	}
	fds, err := unix.ParseUnixRights(&list[0])
	if err != nil || len(fds) != 1 {
		return nil, fmt.Errorf("the sandbox handed out no listener: %w", err)
	}
	f := os.NewFile(uintptr(fds[0]), "listener")
	defer f.Close()
	return net.FileListener(f)
}
