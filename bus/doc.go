// Package bus is how the services talk to each other, over NATS JetStream. It and the
// packages below it are the only ones that know NATS and the wire format; they take and
// give values of package forge.
//
// [Connect] returns a [Bus], which is a connection with a door for each kind of use:
//
//	Journal      the decisions of every machine, from which all else follows
//	Events       a runner takes what machines have to decide on     (package decide)
//	Effects      a runner makes happen what was decided             (package decide)
//	Changes      everybody follows what happens to intents
//	Commands     a worker takes what it has to do                   (package work)
//	Leases       a worker holds the right to work on a task          (package work)
//	Results      a worker hands in what came of it                  (package work)
//	Submissions  people and systems ask for something               (package requests)
//	Leftovers    people have removed what finished intents left     (package requests)
//	Presence     replicas announce themselves                       (package presence)
//	Live         progress, and other messages that are not stored
//	Transcripts  what agents and commands did, line by line
//	Deliveries   a gateway stores what forges and chats tell it
//	Intakes      a gateway stores what its rules let in
//	Objects      files that workers hand on to one another
//	Backups      an administrator copies all of it, and puts it back (package backup)
//
// The Bus itself makes the streams ([Bus.Ensure]), and has lost ones restored ([Bus.Guard]).
//
// Deliveries are at least once. What makes a repetition harmless is the state machine that
// an event goes to, not the bus.
package bus
