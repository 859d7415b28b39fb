// Package overhttp asks the gateway of an organisation for what the command
// line needs, with a token and by the API of docs/guide-api.md.
//
// A [Client] is about one project. It reads the state of intents as the rules
// have it ([Client.Overview], [Client.Whole]), reads the documents that the API
// answers everybody with ([Client.Diff] and others), asks in the name of the
// token's holder ([Client.Ask]), and follows what happens ([Client.Watch]).
//
// The token goes to the address that the person gave, and nowhere else: no redirect is followed,
// and without TLS nothing is sent to another machine. It is in no error and in no line of the log.
//
// Whoever answers is not trusted further than that. An answer is bounded in size and time,
// has to be JSON, may have fields that this version does not know, and none of its texts
// steers a terminal: each goes through package term here, before anything else sees it.
//
// What is asked for can be sent again: each request that changes something has
// a key, or the id of the intent, by which the gateway knows it. So a request
// is repeated after a lost answer, and nothing happens twice.
//
// These addresses below /api/v1/projects/<project> are asked, each for the commands beside it:
//
//	GET  whole                       status, inbox, schedules, lists of goals, completion: all intents and the project
//	GET  intents/<id>/whole          show, inbox, history, clarifications, answer, goals: one intent, with its records
//	GET  intents/<id>/diff           diff, and the inbox where a person wants to see the change
//	GET  intents/<id>/transcript     logs
//	GET  intents/<id>/timeline       replay
//	GET  costs, health, queue, settings    the commands of these names
//	GET  events                      watch, and status --watch: says when to look again
//	POST intents                     create
//	POST intents/<id>/<wish>         approve, request-changes, reject, answer, retry, cancel, pause, resume
//
// A request goes this way:
//
//	send ------------> a success ----> read to its end, bounded, JSON ----> cleaned, to the caller
//	 ^                     |
//	 |                     +----> something else: garbage, told as such
//	 |
//	 +--- a pause <--- 429, 502, 503, 504, a broken connection, no answer in time
//	 |    as long as the gateway says, at most bounds.pause
//	 |
//	 +--- at most bounds.tries times within bounds.all; then the last failure is told
//
//	 any other refusal ----> told by its fields, or in the words of the gateway
//
// Whether a request that is sent again was done the first time is not known
// here, and need not be: the gateway knows its key.
//
// Of the attacks on it these are tried in its tests:
//
//	a redirect, to another host or the same one          no request follows it
//	an address without TLS, or a name that leads away    refused before anything is sent
//	a certificate of an authority that is not known      refused, and not tried again
//	a page to log in, or of a proxy's error              told as such; the page itself is not shown
//	half an answer, one without an end, a slow one       bounded, and asked for again where that may help
//	fields of a newer version                            passed over
//	escape sequences in any text, word or key            gone before the text is anywhere
//	an answer that was lost after the request was done   the same request again, which the gateway knows
//	a list or a stream that goes in a circle             ends with an error
//	a token that has expired, or has too low a role      told with what to do, and not tried again
package overhttp
