// Package overhttp asks the gateway of an organisation for what the command line needs, with a token and by the
// API of docs/guide-api.md.
//
// A [Client] is about one project. It reads the state of intents as the rules have it ([Client.Overview],
// [Client.Whole]), reads the documents that the API answers everybody with ([Client.Diff] and others), asks in the
// name of the token's holder ([Client.Ask]), and follows what happens ([Client.Watch]).
//
// The token goes to the address that the person gave, and nowhere else: no redirect is followed, and without TLS
// nothing is sent to another machine. It is in no error and in no line of the log.
//
// Whoever answers is not trusted further than that. An answer is bounded in size and time, has to be JSON, may have fields
// that this version does not know, and none of its texts steers a terminal: each goes through package term here, before
// anything else sees it.
//
// What is asked for can be sent again: each request that changes something has a key, or the id of the intent, by which
// the gateway knows it. So a request is repeated after a lost answer, and nothing happens twice.
package overhttp
