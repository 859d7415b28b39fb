// Package monitoring tries the alert rules and the dashboard of deploy/k8s/components/monitoring
// with the rule and query engine of Prometheus. It has tests only, and is a module of its own
// outside of the workspace, so that nothing else depends on Prometheus: make test-alerts runs them.
package monitoring
