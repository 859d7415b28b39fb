// Package service is what the main programs of all services share: configuration,
// the connection, health, an orderly end, and for workers the loop that takes
// commands and reports results.
package service
