package process

import (
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pfl-forge/pfl-forge/agent/sandbox"
)

// networkProbes reach for the network, and for sockets that belong to it.
func networkProbes() []probe {
	dial := func(network string, host func(*outside) []string) func(*outside) error {
		return func(o *outside) error {
			last := errNotReached
			for _, h := range host(o) {
				c, err := net.DialTimeout(network, net.JoinHostPort(h, strconv.Itoa(o.Port)), 2*time.Second)
				if err != nil {
					last = err
					continue
				}
				defer func() { _ = c.Close() }()
				if network == "tcp" {
					return nil
				}
				_ = c.SetDeadline(time.Now().Add(2 * time.Second))
				_, _ = c.Write([]byte("x"))
				if _, last = c.Read(make([]byte, 1)); last == nil {
					return nil
				}
			}
			return last
		}
	}
	fixed := func(h string) func(*outside) []string { return func(*outside) []string { return []string{h} } }
	own := func(o *outside) []string { return o.Addrs }
	admin := []int{unix.CAP_NET_ADMIN, unix.CAP_NET_RAW, unix.CAP_SYS_ADMIN}
	lacksAddress := "a machine may have no such address"
	p := []probe{
		{name: "a service on loopback", network: true, try: dial("tcp", fixed("127.0.0.1"))},
		{name: "a service on another address of loopback", network: true, try: dial("tcp", fixed("127.8.9.10"))},
		{name: "a service on loopback 6", network: true, blind: lacksAddress, try: dial("tcp", fixed("::1"))},
		{name: "a service on loopback 6 by an address of 4", network: true, try: dial("tcp", fixed("::ffff:127.0.0.1"))},
		{name: "a service on no address", network: true, try: dial("tcp", fixed("0.0.0.0"))},
		{name: "a service on an address of the machine", network: true, blind: lacksAddress, try: dial("tcp", own)},
		{name: "packets to loopback", network: true, try: dial("udp", fixed("127.0.0.1"))},
		{name: "packets to an address of the machine", network: true, blind: lacksAddress, try: dial("udp", own)},
		{name: "interfaces of the machine", network: true, blind: lacksAddress, try: func(o *outside) error {
			list, err := net.InterfaceAddrs()
			return firstError(err, reached(len(o.Addrs) > 0 && strings.Contains(fmt.Sprint(list), o.Addrs[0])))
		}},
		{
			name: "routes of the machine", network: true, blind: lacksAddress,
			try: func(*outside) error { return reached(strings.Count(text("/proc/net/route"), "\n") > 1) },
		},
		{name: "connections of the machine", network: true, try: func(o *outside) error {
			return reached(strings.Contains(text("/proc/net/tcp6")+text("/proc/net/tcp"), fmt.Sprintf(":%04X ", o.Port)))
		}},
		{name: "sockets of the machine", network: true, try: func(o *outside) error { return o.holds("/proc/net/unix") }},
		{name: "an abstract socket", network: !sandbox.HidesAbstractSockets(), try: func(o *outside) error { return connected(o.abstract()) }},
		{name: "a socket outside", try: func(o *outside) error { return connected(o.path()) }},
		{name: "a socket outside through a link", try: func(o *outside) error {
			_ = os.Symlink(o.path(), "s")
			return connected("s")
		}},
		{name: "an address for loopback", needs: admin, try: func(*outside) error { return netlink(unix.RTM_NEWLINK) }},
		{name: "raw packets", needs: admin, try: opensSocket(unix.AF_INET, unix.IPPROTO_ICMP)},
		{name: "raw packets of any kind", needs: admin, try: opensSocket(unix.AF_INET, unix.IPPROTO_RAW)},
		{name: "raw packets 6", needs: admin, blind: lacksAddress, try: opensSocket(unix.AF_INET6, unix.IPPROTO_ICMPV6)},
		{name: "frames", needs: admin, try: opensSocket(unix.AF_PACKET, 0)},
		{name: "another's address", needs: admin, try: option(unix.SOL_IP, unix.IP_TRANSPARENT, 1)},
		{name: "marked packets", needs: admin, try: option(unix.SOL_SOCKET, unix.SO_MARK, 7)},
		{name: "packets before others", needs: admin, try: option(unix.SOL_SOCKET, unix.SO_PRIORITY, 7)},
		{name: "buffers above the limit", needs: admin, try: option(unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 64<<20)},
	}
	return family("network", p)
}

// opensSocket returns a probe that opens a raw socket and closes it.
func opensSocket(family, protocol int) func(*outside) error {
	return func(*outside) error {
		fd, err := unix.Socket(family, unix.SOCK_RAW|unix.SOCK_CLOEXEC, protocol)
		if err != nil {
			return err
		}
		return unix.Close(fd)
	}
}

// option returns a probe that sets an option of a socket.
func option(level, name, value int) func(*outside) error {
	return func(*outside) error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer func() { _ = unix.Close(fd) }()
		return unix.SetsockoptInt(fd, level, name, value)
	}
}

// connected connects to a unix socket.
func connected(name string) error {
	c, err := net.Dial("unix", name)
	if err != nil {
		return err
	}
	return c.Close()
}

// netlink asks the kernel for a change of loopback that changes nothing, and returns its answer.
func netlink(kind uint16) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	m := make([]byte, unix.SizeofNlMsghdr+unix.SizeofIfInfomsg)
	binary.NativeEndian.PutUint32(m, uint32(len(m)))
	binary.NativeEndian.PutUint16(m[4:], kind)
	binary.NativeEndian.PutUint16(m[6:], unix.NLM_F_REQUEST|unix.NLM_F_ACK)
	binary.NativeEndian.PutUint32(m[unix.SizeofNlMsghdr+4:], 1) // loopback
	if err := unix.Sendto(fd, m, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	answer := make([]byte, 4096)
	if _, _, err := unix.Recvfrom(fd, answer, 0); err != nil {
		return err
	}
	if code := int32(binary.NativeEndian.Uint32(answer[unix.SizeofNlMsghdr:])); code != 0 {
		return unix.Errno(-code)
	}
	return nil
}

// openQueue opens a message queue.
func openQueue(name string, flags int) (int, error) {
	fd, _, errno := unix.Syscall6(unix.SYS_MQ_OPEN, cstring(name), uintptr(flags|unix.O_CLOEXEC), 0o600, 0, 0, 0)
	if errno != 0 {
		return -1, errno
	}
	return int(fd), nil
}
