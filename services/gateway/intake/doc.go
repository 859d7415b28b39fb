// Package intake decides what becomes of a trigger: an issue, a label or a comment on a forge.
//
// It does no I/O. Whoever calls it has asked the forge for the facts
// ([Trigger]) and carries out the [Decision]:
//
//	Parse, Rules.Decide   the operator's rules in their order: the first one that matches decides
//	ReadDelivery          a trigger as a webhook tells it, for explanations before a gateway has the rules
//	Tally                 what was let in on a day, for limits
//	Rules.Teams           the teams that rules name, which the forge has to be asked about
//	ParseNarrowing        the rules of a repository, which can only make a decision stricter
//	Commands              the commands in a comment, as goldmark reads it
//	Hash, Told            which text an issue had, and who is known to have edited it, also by what deliveries tell
//	Plain, Quote          text on its way out, in which no bot finds a mention, a reference or a command
//	EventID               the name under which a runner knows a trigger, however often it is told
package intake
