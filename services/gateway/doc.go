// Package gateway is for those who do not speak NATS: an HTTP API for people
// and systems, and the hooks of forges and chats.
//
// It decides nothing about an intent: what comes in is checked, stored and handed to
// a runner, and what goes out is read from a runner. Which issues and comments of a
// forge become an intent is decided by the operator's rules, in package intake.
package gateway
