// Package rest asks a forge over HTTP with JSON: what the back ends have in common.
//
// A [Client] reads answers within bounds, tells the ways in which a forge fails from each
// other by the errors of package forges, and takes the token nowhere but to the forge. It
// never waits: a limit is an error with its end.
//
//	the token       is asked for with each request, and is in no error
//	a redirect      is an error; those of Config.Follow are followed on the forge itself, with the method as it was
//	an answer       has 8 MiB at most, and comes within 20 seconds
//	a list          has 40 pages at most; more are an error and not a part of the list
//	a limit         is a ParkedError. Where Config.Hold says so, nothing is asked until its end: GitHub bars accounts that go on asking
//	a file          has 64 KiB at most, and what is none is told from what is not there: the one says something about the other
//	the same again  where Config.Keep says so, an answer with an ETag is kept and asked for by that: it costs nothing of GitHub's limit
package rest
