// Package changes tells everybody what happens to intents. A change is the difference
// between two records of a journal, published as a CloudEvent on a subject of its own, once
// and in order. Any of several runners may publish, because the stream itself says how far
// the publishing has come.
//
//	Stream.Publish   makes the changes from the journals, for runners
//	Stream.Follow    gives them to a follower, which goes on where it was
//
// Package document has the documents that other systems see.
package changes
