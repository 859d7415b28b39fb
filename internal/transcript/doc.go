// Package transcript keeps what happens in an attempt, line by line as NDJSON, for people
// and for the command line. A transcript is in up to three places:
//
//   - in a stream on the bus, where it can be followed while the attempt runs, and which
//     forgets (a [Writer] puts it there, in batches);
//   - in a file of the worker's machine, for people's own tools (the same Writer);
//   - as one object in the object store, made of the stream when the attempt has ended
//     ([Store]), which lives longer ([FindArchived], [Archived.Read]).
//
// A transcript never holds up work: what cannot be stored in time is left out, and a line
// says so. It is bounded as well: of an attempt that says too much, the first lines and the
// last ones are kept.
//
//	line.go       Line, the unit of all three
//	writer.go     Writer
//	tail.go       the last lines of an attempt that says too much
//	file.go       the file
//	whole.go      Store, and the layout of the object
//	archived.go   reading objects
package transcript
