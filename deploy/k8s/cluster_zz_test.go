//go:build cluster

package k8s

import "testing"

func TestClusterZZ(t *testing.T) {
	c := findCluster(t)
	version := c.images(t)
	in := newInstallation(t, c, "pfl-forge-test", version)
	in.write(t, "overlays/single-node", "", in.shop(t)+in.gateway(t))
	in.ready(t, "", 7)
	in.submit(t, "first", 3)
	in.merged(t)
	in.console(t)
	in.merged(t)
}
