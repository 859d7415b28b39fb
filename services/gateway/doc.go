// Package gateway is the door for those who do not speak NATS: an HTTP API for people and systems, and the hooks of forges
// and chats.
//
// It decides nothing. What comes in is checked, stored and handed to a runner; what goes out is read from a runner.
package gateway
