package rest

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"syscall"
)

// ErrInside says that an address is one that its owner cannot mean: of the machine, of the network around it, or of the service that tells a
// machine its credentials.
var ErrInside = errors.New("the address leads into the gateway's own network")

// Guard keeps requests to an address of another one's choice out of the network in which the gateway runs: names of hosts are resolved by
// others, at any time to another address, so each connection is looked at when it is made.
type Guard struct {
	// Private lets connections go to private addresses, for what runs in the same network. Those of machines for themselves, such as
	// link-local ones, stay refused.
	Private bool
}

var (
	// shared are the addresses of carriers for themselves, which clouds use as private ones.
	shared = netip.MustParsePrefix("100.64.0.0/10")
	// told are addresses at which clouds tell machines their credentials, besides those that are link-local.
	told = []netip.Addr{netip.MustParseAddr("fd00:ec2::254"), netip.MustParseAddr("100.100.100.200"), netip.MustParseAddr("168.63.129.16")}
	// embeds has IPv6 addresses that stand for one of IPv4, which is in the last four bytes.
	embeds = netip.MustParsePrefix("64:ff9b::/96")
	// here are addresses of "this network", which some systems take for this machine.
	here = netip.MustParsePrefix("0.0.0.0/8")
)

// Allows reports whether a connection to an address may be made.
func (g *Guard) Allows(a netip.Addr) bool {
	a = a.Unmap()
	if embeds.Contains(a) {
		b := a.As16()
		a = netip.AddrFrom4([4]byte(b[12:]))
	}
	switch {
	case !a.IsGlobalUnicast(), here.Contains(a), slices.Contains(told, a): // the first are loopback, link-local, multicast and no addresses
		return false
	case a.IsPrivate(), shared.Contains(a):
		return g.Private
	}
	return true
}

// refuses reports whether the host of an address is written as one that is not asked, also by way of a proxy.
func (g *Guard) refuses(base *url.URL) bool {
	a, err := netip.ParseAddr(base.Hostname())
	return g != nil && err == nil && !isLoopback(base.Hostname()) && !g.Allows(a.WithZone(""))
}

// dial returns how connections for requests to base are made. A proxy is the operator's, and is not looked at; and so is this machine, where the
// address itself names it.
func (g *Guard) dial(base *url.URL) func(ctx context.Context, network, address string) (net.Conn, error) {
	free := &net.Dialer{Timeout: patience}
	guarded := &net.Dialer{Timeout: patience, Control: func(_, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil || !g.Allows(to.Addr().WithZone("")) {
			return ErrInside
		}
		return nil
	}}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if host, _, err := net.SplitHostPort(address); err == nil && host == base.Hostname() && !isLoopback(host) {
			return guarded.DialContext(ctx, network, address)
		}
		return free.DialContext(ctx, network, address)
	}
}
