// Package journal keeps the decisions of every machine: intents and projects. A decision
// is a record, the records of a machine are its journal, and everything else on the bus can
// be made again from the journals.
//
// [Journal.Append] writes a record if the journal did not go on meanwhile, [Journal.Load]
// reads a machine, [Journal.Follow] reads all of them and goes on live. What lists show is
// in the summary of the last record: [Journal.Summaries].
package journal
