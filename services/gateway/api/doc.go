// Package api serves people and systems by HTTP: they ask for changes, look, decide and
// follow, with a token each.
//
// It is one table of routes, [Routes]. Everything that is the same for all of them happens
// once, before a route is served: whose token it is, how often it may ask, the names in the
// path, the role, the type and the size of the content. What is asked for is handed to a
// runner in the name of whoever asks, with the gateway's beside it, and answered with the
// runner's decision; nothing is decided here.
//
// Every error is a problem of RFC 9457, with each mistake by its field.
package api
