// Package journal keeps the decisions of every machine: intents and projects. A decision
// is a record, the records of a machine are its journal, and everything else on the bus can
// be made again from the journals.
//
// [Journal.Append] writes a record if the journal did not go on meanwhile, [Journal.Load]
// reads a machine, [Journal.Follow] reads all of them and goes on live. What lists show is
// in the summary of the last record: [Journal.Summaries].
//
// # What holds a journal up
//
// A reader passes over what is no record: garbage has no decision in it, and
// the next record carries its hash all the same. Two kinds of messages are
// another matter, since a decision without them could be wrong:
//
//   - a record of a newer version, which Load returns as an *UnknownError;
//   - a record that does not follow from the message before it, with which Load returns a broken head.
//
// Both stop the machine until a person acts. Troubles names them. If such a
// message is the last one, if no other machine has heard of it, and if the
// fault is its own, SetAside stores a mark behind it:
//
//	record 7 <- record 8 <- newer 9 <- mark of 9 <- record 10
//
// From then on every version skips 9 as it skips garbage, also one that could
// read it. It stays with its bytes, and so does the mark: record 10 carries the
// hash of the mark, and a mark names the hash of its message, so neither can be
// altered later without a break. A mark of other bytes has no effect.
//
// A mark stands nowhere but directly behind its message, so a reader takes each
// message when it has the next one of the journal, or its end: nothing is read
// twice. One who follows live takes what comes as it comes.
package journal
