package rest

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/net/idna"
)

// ErrInside says that an address is one that its owner cannot mean: of the machine,
// of the network around it, or of the service that tells a machine its credentials.
var ErrInside = errors.New("the address leads into the gateway's own network")

// Guard keeps requests to an address of another one's choice out of the network
// in which the gateway runs: names of hosts are resolved by others, at any time
// to another address, so each connection is looked at when it is made.
type Guard struct {
	// Private lets connections go to private addresses, for what runs in the same
	// network. Those of machines for themselves, such as link-local ones, stay refused.
	Private bool
}

var (
	// private are addresses that are routed in the network of an owner alone,
	// besides those of netip.Addr.IsPrivate: of carriers, of protocols, for
	// measurements, reserved ones, and the site-local ones of IPv6.
	private = prefixes("100.64.0.0/10", "192.0.0.0/24", "198.18.0.0/15", "240.0.0.0/4", "fec0::/10")
	// metadata are addresses at which clouds tell machines their credentials,
	// besides those that are link-local.
	metadata = []netip.Addr{netip.MustParseAddr("fd00:ec2::254"), netip.MustParseAddr("100.100.100.200"), netip.MustParseAddr("168.63.129.16")}
	// embeds has IPv6 addresses that stand for one of IPv4, which is in the
	// last four bytes, and tunnels those that have it in bytes 2 to 5.
	embeds  = prefixes("64:ff9b::/96", "64:ff9b:1::/48", "::/96")
	tunnels = netip.MustParsePrefix("2002::/16")
	// here are addresses of "this network", which some systems take for this machine.
	here = netip.MustParsePrefix("0.0.0.0/8")
)

// prefixes returns the networks of some texts.
func prefixes(texts ...string) (list []netip.Prefix) {
	for _, text := range texts {
		list = append(list, netip.MustParsePrefix(text))
	}
	return list
}

// within reports whether an address is in one of some networks.
func within(list []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(list, func(p netip.Prefix) bool { return p.Contains(a) })
}

// Allows reports whether a connection to an address may be made.
func (g *Guard) Allows(a netip.Addr) bool {
	a = a.Unmap()
	switch b := a.As16(); {
	case within(embeds, a):
		a = netip.AddrFrom4([4]byte(b[12:]))
	case tunnels.Contains(a):
		a = netip.AddrFrom4([4]byte(b[2:6]))
	}
	switch {
	case !a.IsGlobalUnicast(), here.Contains(a), slices.Contains(metadata, a): // the first are loopback, link-local, multicast and no addresses
		return false
	case a.IsPrivate(), within(private, a):
		return g.Private
	}
	return true
}

// refuses reports whether the host of an address is written as one that is not asked. It counts
// where a proxy resolves the name, which may read numbers as an address that are none here.
func (g *Guard) refuses(base *url.URL) bool {
	host := base.Hostname()
	if g == nil || isLoopback(host) {
		return false
	}
	if !strings.Contains(host, ":") { // other letters may stand for those of ASCII, and are sent as them
		ascii, err := idna.Lookup.ToASCII(host)
		if err != nil {
			ascii = strings.ToLower(host)
		}
		host = strings.TrimSuffix(ascii, ".")
	}
	if a, err := netip.ParseAddr(host); err == nil {
		return !g.Allows(a.WithZone(""))
	}
	last := host[strings.LastIndexByte(host, '.')+1:]
	return last == "localhost" || strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x")
}

// dial returns how connections for requests to base are made. A proxy is the operator's,
// and is not looked at; and so is this machine, where the address itself names it. Who
// is dialed otherwise is the host of base, however that is spelled by then.
func (g *Guard) dial(base *url.URL) func(ctx context.Context, network, address string) (net.Conn, error) {
	proxy, err := http.ProxyFromEnvironment(&http.Request{URL: base})
	if err == nil && proxy != nil || isLoopback(base.Hostname()) {
		return (&net.Dialer{Timeout: patience}).DialContext
	}
	guarded := &net.Dialer{Timeout: patience, Control: func(_, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil || !g.Allows(to.Addr().WithZone("")) {
			return ErrInside
		}
		return nil
	}}
	return guarded.DialContext
}
