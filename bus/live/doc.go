// Package live carries messages that are not stored: the progress of attempts, what
// workers need not do any more, and which commits are gone from the origin. Who is not
// connected misses them, so nothing may depend on them but speed and what people watch.
package live
