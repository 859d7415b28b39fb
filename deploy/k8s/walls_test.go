//go:build manifests || cluster

package k8s

import (
	"fmt"
	"net/netip"
	"slices"

	networking "k8s.io/api/networking/v1"
)

// walled are addresses that no block of public ones may have: those at which clouds give nodes,
// and who asks from one, settings and credentials, and one of each private and local network.
var walled = []string{
	"169.254.169.254", "168.63.129.16", "100.100.100.200", "192.0.0.192", "fd00:ec2::254", "fd20:ce::254",
	"10.0.0.1", "172.16.0.1", "192.168.0.1", "127.0.0.1", "fc00::1", "fe80::1", "::1", "64:ff9b::a9fe:a9fe",
}

// blocksHaveWalls asks that a policy which lets pods reach a large part of all addresses leaves
// out the walled ones. A block of one network, such as that of an API server, was meant.
func blocksHaveWalls(m *manifests) []string {
	var found []string
	for _, p := range of[*networking.NetworkPolicy](m) {
		for _, r := range p.Spec.Egress {
			for _, peer := range r.To {
				if peer.IPBlock == nil {
					continue
				}
				for _, address := range reached(peer.IPBlock) {
					found = append(found, fmt.Sprintf("NetworkPolicy %s lets pods reach %s", p.Name, address))
				}
			}
		}
	}
	return found
}

// reached returns the walled addresses that are in a large block.
func reached(b *networking.IPBlock) []string {
	block := netip.MustParsePrefix(b.CIDR)
	if block.Bits() >= 8 {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(walled), func(text string) bool {
		address := netip.MustParseAddr(text)
		return !block.Contains(address) || slices.ContainsFunc(b.Except, func(e string) bool { return netip.MustParsePrefix(e).Contains(address) })
	})
}
