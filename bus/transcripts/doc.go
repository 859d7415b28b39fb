// Package transcripts keeps what agents and commands did in attempts, line by line, in a
// stream that people can follow live. The stream forgets the oldest lines first; the whole
// transcript of an attempt that has ended is an object of package objects.
package transcripts
