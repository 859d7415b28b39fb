package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"
	"unsafe"
)

// stand gives the network that this process is in addresses of others, such as
// that of a cloud's metadata server, and accepts connections there, until it is
// asked to end. Then it takes the addresses away.
func stand(addresses []string) (failed error) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	for i, address := range addresses {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return err
		}
		// An address of the loopback interface that has a name of its own can be taken away again.
		name := fmt.Sprintf("lo:forge%d", i)
		defer func() { failed = errors.Join(failed, setInterface(name, syscall.SIOCSIFFLAGS, nil)) }()
		err = errors.Join(setInterface(name, syscall.SIOCSIFADDR, net.ParseIP(host).To4()), setInterface(name, syscall.SIOCSIFNETMASK, net.IP{255, 255, 255, 255}))
		if err != nil {
			return err
		}
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
		if err != nil {
			return err
		}
		go func() {
			for {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				_ = conn.Close()
			}
		}()
	}
	fmt.Fprintln(os.Stderr, "stands at", addresses) //nolint:forbidigo // of a main
	<-ctx.Done()
	return nil
}

// setInterface makes one change of an interface: its address, its mask, or,
// without an address, that it is down.
func setInterface(name string, change uintptr, ip net.IP) error {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = syscall.Close(fd) }()
	var request struct { // struct ifreq
		name   [syscall.IFNAMSIZ]byte
		family uint16
		port   uint16
		ip     [4]byte
		rest   [16]byte
	}
	copy(request.name[:syscall.IFNAMSIZ-1], name)
	if ip != nil {
		request.family = syscall.AF_INET
		copy(request.ip[:], ip)
	}
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), change, uintptr(unsafe.Pointer(&request))) //nolint:gosec // the kernel asks for it
	if errno != 0 {
		return fmt.Errorf("%s %s: %w", name, ip, errno)
	}
	return nil
}
