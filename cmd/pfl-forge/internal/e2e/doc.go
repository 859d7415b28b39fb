// Package e2e tests the whole as its users have it: the built programs, real
// repositories, real processes, killed where it hurts. It holds tests only.
package e2e
