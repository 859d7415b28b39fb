// Package e2e tests the whole as its users have it: the built programs, real
// repositories, real processes, killed where it hurts. It holds tests only.
//
// Agents are the recipe agent, or real CLIs with a model of package agenttest
// that follows a scenario. Tests wait for progress and never for time, and a test
// that kills something asserts that nothing was done twice and nothing was lost.
package e2e
