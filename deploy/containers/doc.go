// Package containers has the tests that run pfl-forge as containers: our images as a
// container runtime sees them, and the five services on a NATS cluster whose servers are
// killed and replaced by newer ones while intents are under way.
//
// They need a Docker daemon, so they are behind the build tag containers, and make
// test-containers runs them. Kubernetes is deploy/k8s's; its configuration of NATS is used
// here, too.
package containers
