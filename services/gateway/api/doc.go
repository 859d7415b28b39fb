// Package api serves people and systems by HTTP: they ask for changes, look, decide and
// follow, with a token each.
//
// It is one table of routes, [Routes]. Everything that is the same for all of them happens
// once, before a route is served: whose token it is, how often it may ask, the names in the
// path, the role, the type and the size of the content. What is asked for is handed to a
// runner in the name of whoever asks, with the gateway's beside it, and answered with the
// runner's decision; nothing is decided here.
//
// # Who is trusted with what
//
// The holder of a token says what its roles let them say, in the projects that it names. A
// token that leaked is worth that, until it is taken out of the file or expires; commands, and
// knowledge of a project, are never worth it. A system's token decides nothing, whatever the
// file says.
//
// A path is not trusted to be names: each goes through the constructor of its id. A content
// is read by a closed list of fields, once each. A client is not trusted to read, to send, or
// to end: headers, contents, answers and streams have their times and sizes.
//
// # What an answer means
//
// 201 and 200 are a runner's decision, journaled before the answer. 202 says that it is stored
// and will be decided. 4xx and "nothing was done" mean that, and any other 503 that it is not
// known: the same request with the same Idempotency-Key is then safe, and tells.
//
// Every error is a problem of RFC 9457, with each mistake by its field.
package api
