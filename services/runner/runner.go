// Package runner is the runner service.
package runner
